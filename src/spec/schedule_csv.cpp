#include <algorithm>
#include <array>
#include <charconv>

#include "spec/schedule.h"
#include "spec/text.h"

namespace tessera::spec {

namespace {

/// Takes digits off the front. Whether there were any and they are a number.
bool take_number(std::string_view& text, int64_t& number) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || text.front() == '-') return false;
  text.remove_prefix(static_cast<size_t>(rest - text.data()));
  return true;
}

/// Takes a name off the front, if it is there.
bool take(std::string_view& text, std::string_view name) {
  if (!text.starts_with(name)) return false;
  text.remove_prefix(name.size());
  return true;
}

enum class Cell : uint8_t { action, communication, wrong };

Cell read_cell(std::string_view text, Action& action) {
  constexpr std::array<std::string_view, 7> kCommunication = {
      "SEND_F", "RECV_F", "SEND_B", "RECV_B", "UNSHARD", "RESHARD", "REDUCE_GRAD"};
  constexpr std::array<ActionKind, 4> kKinds = {ActionKind::forward, ActionKind::backward,
                                                ActionKind::backward_input,
                                                ActionKind::backward_weight};
  if (!take_number(text, action.stage)) return Cell::wrong;
  for (const std::string_view name : kCommunication) {
    if (!take(text, name)) continue;
    const bool whole = text.empty() || (take_number(text, action.micro_batch) && text.empty());
    return whole ? Cell::communication : Cell::wrong;
  }
  for (const ActionKind kind : kKinds) {
    const char letter = letter_of(kind);
    if (!take(text, {&letter, 1})) continue;
    action.kind = kind;
    return take_number(text, action.micro_batch) && text.empty() ? Cell::action : Cell::wrong;
  }
  return Cell::wrong;
}

/// Calls f(the part, its number from 1) for the parts of `text` between separators.
template <class F>
void for_each_part(std::string_view text, char separator, const F& f) {
  for (int64_t number = 1;; ++number) {
    const size_t end = text.find(separator);
    f(text.substr(0, end), number);
    if (end == text.npos) return;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

ParsedSchedule parse_schedule(std::string_view text) {
  ParsedSchedule parsed;
  Schedule& schedule = parsed.schedule;
  // A number of a stage or a micro-batch as large as the text cannot be meant.
  const auto limit = static_cast<int64_t>(text.size());
  int64_t num_stages = 0;
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  if (text.empty()) {
    parsed.errors.push_back("no rows");
    return parsed;
  }
  for_each_part(text, '\n', [&](std::string_view row, int64_t row_number) {
    std::vector<Action>& actions = schedule.ranks.emplace_back();
    for_each_part(row, ',', [&](std::string_view cell, int64_t column) {
      cell = trimmed(cell);
      // Two at once, as DualPipe has them: here one after the other.
      const bool overlap = cell.starts_with('(') && cell.ends_with(")OVERLAP_F_B");
      const std::string_view parts = overlap ? cell.substr(1, cell.find(')') - 1) : cell;
      for_each_part(parts, overlap ? ';' : ',', [&](std::string_view part, int64_t) {
        part = trimmed(part);
        if (part.empty()) return;
        Action action;
        Cell what = read_cell(part, action);
        if (std::max(action.stage, action.micro_batch) >= limit) what = Cell::wrong;
        if (what == Cell::wrong) {
          parsed.errors.push_back("row " + std::to_string(row_number) + ", column " +
                                  std::to_string(column) + ": \"" + std::string(part) +
                                  "\" is no action");
        }
        if (what != Cell::action) return;
        actions.push_back(action);
        num_stages = std::max(num_stages, action.stage + 1);
        schedule.num_micro_batches = std::max(schedule.num_micro_batches, action.micro_batch + 1);
      });
    });
  });
  if (num_stages * schedule.num_micro_batches > limit) {
    parsed.errors.push_back("the text is too short for the actions of " +
                            std::to_string(num_stages) + " stages and " +
                            std::to_string(schedule.num_micro_batches) + " micro-batches");
    return parsed;
  }
  schedule.rank_of_stage.assign(static_cast<size_t>(num_stages), -1);
  for (int64_t rank = schedule.num_ranks() - 1; rank >= 0; --rank) {
    for (const Action& action : schedule.ranks[static_cast<size_t>(rank)]) {
      schedule.rank_of_stage[static_cast<size_t>(action.stage)] = rank;
    }
  }
  return parsed;
}

}  // namespace tessera::spec
