#include "train/rank_world.h"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace tessera::train {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::seconds;

/// How long a killed process may take to disappear: its memory is given back first, and a device or
/// network disk can hold it.
constexpr seconds kKillGrace{30};
/// Longest sleep: a SIGCHLD that another thread of this process takes away costs no more than this.
constexpr seconds kLongestSleep{1};

/// Where the world stands between "all is well" and "all are gone". It only moves forward.
enum class Phase { running, noticing, terminating, killing };

class World {
 public:
  World(const Graces& graces, StopSignals& signals, const LaunchReport& report)
      : graces_(graces), signals_(signals), report_(report) {}

  void start(const std::vector<std::string>& command,
             const std::vector<std::vector<std::string>>& environments);
  WorldEnd watch();

 private:
  /// A process, and the last signal it was sent.
  struct Rank {
    RankProcess process;
    int told_to_stop;
  };

  void collect();
  void handle(int signal);
  void escalate();
  void tell(int signal);
  void enter(Phase phase, std::chrono::milliseconds grace);
  [[noreturn]] void give_up();
  std::vector<int> running() const;

  const Graces graces_;
  StopSignals& signals_;
  const LaunchReport& report_;
  const Clock::time_point start_ = Clock::now();
  std::vector<Rank> ranks_;
  WorldEnd end_;
  Phase phase_ = Phase::running;
  Clock::time_point deadline_ = Clock::time_point::max();  // of the phase
};

void World::start(const std::vector<std::string>& command,
                  const std::vector<std::vector<std::string>>& environments) {
  ranks_.reserve(environments.size());
  for (const std::vector<std::string>& environment : environments) {
    ranks_.push_back({RankProcess(command, environment), 0});
  }
}

WorldEnd World::watch() {
  for (;;) {
    collect();
    if (end_.ends.size() == ranks_.size()) break;
    const Clock::time_point now = Clock::now();
    if (now >= deadline_) {
      escalate();
      continue;
    }
    const Clock::duration sleep = std::min<Clock::duration>(deadline_ - now, kLongestSleep);
    if (const int signal = signals_.wait(sleep); signal != 0) handle(signal);
  }
  // A batch system that stops a job signals ranks and launcher at once, and the ranks may be gone
  // before the launcher has looked at its own signal.
  if (end_.first_failure && end_.interrupted_by == 0) {
    end_.interrupted_by = signals_.wait(std::chrono::nanoseconds{0});
  }
  return std::move(end_);
}

/// Takes note of every rank that has ended since the last look, and of who failed first.
void World::collect() {
  const size_t seen_before = end_.ends.size();
  for (size_t r = 0; r < ranks_.size(); ++r) {
    const std::optional<ProcessEnd> end = ranks_[r].process.poll();
    if (!end) continue;
    const double after = std::chrono::duration<double>(Clock::now() - start_).count();
    end_.ends.push_back(
        {static_cast<int>(r), ranks_[r].process.pid(), *end, after, ranks_[r].told_to_stop});
    const RankEnd& last = end_.ends.back();
    if (!last.end.failed() || last.told_to_stop != 0) continue;
    const bool together = end_.first_failure && *end_.first_failure >= seen_before;
    if (!end_.first_failure || better_culprit(last, end_.ends[*end_.first_failure], together)) {
      end_.first_failure = end_.ends.size() - 1;
    }
  }
  if (end_.first_failure && phase_ == Phase::running) enter(Phase::noticing, graces_.notice);
}

void World::handle(int signal) {
  if (end_.interrupted_by != 0) {
    report_(fmt::format("{} again: killing {}", name_signal(signal), list_ranks(running())));
    tell(SIGKILL);
    enter(Phase::killing, kKillGrace);
    return;
  }
  end_.interrupted_by = signal;
  report_(fmt::format("{}: stopping {}", name_signal(signal), list_ranks(running())));
  if (phase_ >= Phase::terminating) return;
  tell(SIGTERM);
  enter(Phase::terminating, graces_.interrupt);
}

/// The phase's time is up and ranks still run.
void World::escalate() {
  const std::string still = list_ranks(running());
  switch (phase_) {
    case Phase::running:
      return;
    case Phase::noticing:
      report_(fmt::format("a rank has failed and {} did not stop: sending SIGTERM", still));
      tell(SIGTERM);
      return enter(Phase::terminating, graces_.terminate);
    case Phase::terminating:
      report_(fmt::format("{} did not stop on SIGTERM: killing", still));
      tell(SIGKILL);
      return enter(Phase::killing, kKillGrace);
    case Phase::killing:
      give_up();
  }
}

void World::give_up() {
  const std::string still = list_ranks(running());
  for (Rank& rank : ranks_) rank.process.abandon();
  throw core::RunError(fmt::format(
      "{} survived SIGKILL for {} s: the kernel holds on to them, as with a dead network disk",
      still, kKillGrace.count()));
}

void World::tell(int signal) {
  for (Rank& rank : ranks_) {
    if (!rank.process.running()) continue;
    rank.process.signal(signal);
    rank.told_to_stop = signal;
  }
}

void World::enter(Phase phase, std::chrono::milliseconds grace) {
  phase_ = phase;
  deadline_ = Clock::now() + grace;
}

std::vector<int> World::running() const {
  std::vector<int> result;
  for (size_t r = 0; r < ranks_.size(); ++r) {
    if (ranks_[r].process.running()) result.push_back(static_cast<int>(r));
  }
  return result;
}

}  // namespace

WorldEnd run_world(const std::vector<std::string>& command,
                   const std::vector<std::vector<std::string>>& environments, const Graces& graces,
                   StopSignals& signals, const LaunchReport& report) {
  World world(graces, signals, report);
  world.start(command, environments);
  return world.watch();
}

}  // namespace tessera::train
