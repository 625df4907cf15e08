#include <array>
#include <set>
#include <string>
#include <utility>

#include "spec/schedule.h"
#include "spec/schedule_progress.h"

namespace tessera::spec {

namespace {

constexpr size_t kKinds = 4;

/// Looks at the actions of a schedule stage by stage.
class Checker {
 public:
  explicit Checker(const Schedule& schedule, bool training)
      : schedule_(schedule), training_(training) {
    const auto cells = static_cast<size_t>(schedule.num_stages() * schedule.num_micro_batches);
    for (std::vector<Found>& found : found_) found.resize(cells);
    ranks_of_.resize(static_cast<size_t>(schedule.num_stages()));
    for (int64_t rank = 0; rank < schedule.num_ranks(); ++rank) look_at(rank);
    for (int64_t stage = 0; stage < schedule.num_stages(); ++stage) check_stage(stage);
    check_progress();
  }
  std::vector<std::string> mistakes;

 private:
  struct Found {
    int64_t times = 0;
    int64_t rank = 0, position = 0;  // of the first
  };

  void look_at(int64_t rank) {
    if (schedule_.ranks[static_cast<size_t>(rank)].empty()) {
      mistakes.push_back("rank " + std::to_string(rank) + " does nothing");
    }
    int64_t position = 0;
    for (const Action& action : schedule_.ranks[static_cast<size_t>(rank)]) {
      ++position;
      if (action.stage < 0 || action.stage >= schedule_.num_stages() || action.micro_batch < 0 ||
          action.micro_batch >= schedule_.num_micro_batches) {
        mistakes.push_back(to_string(action) + " on rank " + std::to_string(rank) + ": there are " +
                           std::to_string(schedule_.num_stages()) + " stages and " +
                           std::to_string(schedule_.num_micro_batches) + " micro-batches");
        continue;
      }
      ranks_of_[static_cast<size_t>(action.stage)].insert(rank);
      Found& found = at(action.kind, action.stage, action.micro_batch);
      if (++found.times == 1) {
        found.rank = rank;
        found.position = position;
      } else if (found.times == 2) {
        mistakes.push_back(to_string(action) + " is done more than once");
      }
    }
  }

  void check_stage(int64_t stage) {
    const std::string name = "stage " + std::to_string(stage);
    const std::set<int64_t>& ranks = ranks_of_[static_cast<size_t>(stage)];
    const int64_t placed = schedule_.rank_of_stage[static_cast<size_t>(stage)];
    if (ranks.empty()) {
      mistakes.push_back(name + " is on no rank");
      return;
    }
    if (ranks.size() > 1) {
      std::string list;
      for (const int64_t rank : ranks) list += (list.empty() ? "" : ", ") + std::to_string(rank);
      mistakes.push_back(name + " is on several ranks: " + list);
    } else if (*ranks.begin() != placed) {
      mistakes.push_back(name + " belongs to rank " + std::to_string(placed) + ", but rank " +
                         std::to_string(*ranks.begin()) + " does it");
    }
    for (int64_t i = 0; i < schedule_.num_micro_batches; ++i) check_micro_batch(stage, i);
  }

  void check_micro_batch(int64_t stage, int64_t micro_batch) {
    const auto has = [&](ActionKind kind) { return at(kind, stage, micro_batch).times > 0; };
    const auto name = [&](ActionKind kind) { return to_string({kind, stage, micro_batch}); };
    const auto missing = [&](ActionKind kind) { mistakes.push_back(name(kind) + " is missing"); };
    const auto F = ActionKind::forward, B = ActionKind::backward, I = ActionKind::backward_input,
               W = ActionKind::backward_weight;
    if (!has(F)) missing(F);
    if (!training_) {
      for (const ActionKind kind : {B, I, W}) {
        if (has(kind)) mistakes.push_back(name(kind) + " is a backward");
      }
      return;
    }
    if (has(B) && (has(I) || has(W))) {
      mistakes.push_back(name(B) + " does a backward that " + name(has(I) ? I : W) + " does too");
    } else if (!has(B) && !has(I) && !has(W)) {
      missing(B);
    } else if (!has(B)) {
      if (!has(I)) missing(I);
      if (!has(W)) missing(W);
    }
    for (const ActionKind kind : {B, I}) check_order({F, stage, micro_batch}, kind, stage);
    check_order({I, stage, micro_batch}, W, stage);
    if (!has(I)) check_order({F, stage, micro_batch}, W, stage);
    if (stage + 1 == schedule_.num_stages()) return;
    for (const ActionKind kind : {B, W}) {
      check_order({W, stage + 1, micro_batch}, kind, stage,
                  ", which reads what stage " + std::to_string(stage) + " left on their rank");
    }
  }

  /// Of the actions of one micro-batch on one rank.
  void check_order(const Action& first, ActionKind then, int64_t stage,
                   const std::string& why = "") {
    const Found& before = at(first.kind, first.stage, first.micro_batch);
    const Found& after = at(then, stage, first.micro_batch);
    if (before.times == 0 || after.times == 0 || before.rank != after.rank) return;
    if (before.position < after.position) return;
    mistakes.push_back(to_string({then, stage, first.micro_batch}) + " comes before " +
                       to_string(first) + why);
  }

  void check_progress() {
    std::string circle;
    for (const WaitingAction& at : Progress(schedule_, {}).circle()) {
      circle += (circle.empty() ? "" : "; ") + to_string(at.action) + " on rank " +
                std::to_string(at.rank) + " waits for " + to_string(at.needs) + " on rank " +
                std::to_string(at.peer);
    }
    if (!circle.empty()) mistakes.push_back("ranks wait for each other: " + circle);
  }

  Found& at(ActionKind kind, int64_t stage, int64_t micro_batch) {
    return found_[static_cast<size_t>(kind)]
                 [static_cast<size_t>(stage * schedule_.num_micro_batches + micro_batch)];
  }

  const Schedule& schedule_;
  const bool training_;
  std::array<std::vector<Found>, kKinds> found_;  // [stage, micro-batch]
  std::vector<std::set<int64_t>> ranks_of_;       // by stage
};

}  // namespace

std::vector<std::string> mistakes(const Schedule& schedule, bool training) {
  return std::move(Checker(schedule, training).mistakes);
}

}  // namespace tessera::spec
