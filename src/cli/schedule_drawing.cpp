#include "cli/schedule_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace tessera::cli {

using spec::Action;
using spec::Schedule;

namespace {

std::string name_of(const Schedule& schedule, const Action& action) {
  const std::string name = spec::to_string(action);
  if (schedule.num_stages() > schedule.num_ranks()) return name;
  return name.substr(name.find_first_not_of("0123456789"));
}

/// Columns of the whole step.
struct Scale {
  int64_t columns_of(double time) const {
    return static_cast<int64_t>(std::llround(time * columns_a_tick));
  }
  double columns_a_tick = 1;
};

Scale scale_of(const Schedule& schedule, const account::Timeline& timeline) {
  size_t longest = 0;
  double shortest = std::numeric_limits<double>::infinity();
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    for (size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
      longest = std::max(longest, name_of(schedule, schedule.ranks[rank][i]).size());
      const account::Interval& when = timeline.ranks[rank][i];
      if (when.end > when.begin) shortest = std::min(shortest, when.end - when.begin);
    }
  }
  // A step of nothing, or one action that is a thousandth of another, gets what room there is.
  constexpr double kMostColumns = 100'000;
  const double wanted = static_cast<double>(longest + 1) / shortest;
  return {std::min(wanted, kMostColumns / std::max(timeline.makespan, 1e-9))};
}

/// One character of a row, and which action it is of; −1: none.
struct Row {
  std::string text;
  std::vector<int> kinds;
};

Row row_of(const Schedule& schedule, const account::Timeline& timeline, size_t rank, Scale scale) {
  Row row;
  const auto columns = static_cast<size_t>(scale.columns_of(timeline.makespan));
  row.text.assign(columns, ' ');
  row.kinds.assign(columns, -1);
  for (size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
    const Action& action = schedule.ranks[rank][i];
    const auto begin = static_cast<size_t>(scale.columns_of(timeline.ranks[rank][i].begin));
    const auto end = static_cast<size_t>(scale.columns_of(timeline.ranks[rank][i].end));
    std::string name = name_of(schedule, action);
    if (begin + 1 >= end) continue;  // too short to be seen
    name.resize(end - begin - 1, '=');
    std::copy(name.begin(), name.end(), row.text.begin() + static_cast<std::ptrdiff_t>(begin));
    std::fill(row.kinds.begin() + static_cast<std::ptrdiff_t>(begin),
              row.kinds.begin() + static_cast<std::ptrdiff_t>(end - 1),
              static_cast<int>(action.kind));
  }
  return row;
}

std::string painted(const Row& row, size_t begin, size_t end, bool colour) {
  // Black on blue, orange, teal and green, of F, B, I and W.
  constexpr std::array<const char*, 4> kColours = {"\x1b[30;48;5;75m", "\x1b[30;48;5;215m",
                                                   "\x1b[30;48;5;44m", "\x1b[30;48;5;114m"};
  std::string text;
  int kind = -1;
  for (size_t i = begin; i < end; ++i) {
    if (colour && row.kinds[i] != kind) {
      kind = row.kinds[i];
      text += kind < 0 ? "\x1b[0m" : kColours[static_cast<size_t>(kind)];
    }
    const bool filling = colour && row.text[i] == '=';
    text += filling ? ' ' : row.text[i];
  }
  if (kind >= 0) text += "\x1b[0m";
  return text;
}

}  // namespace

std::string drawing(const Schedule& schedule, const account::Timeline& timeline,
                    const DrawingOptions& options) {
  const Scale scale = scale_of(schedule, timeline);
  const std::string widest = std::to_string(schedule.num_ranks() - 1);
  const size_t margin = std::string("rank  ").size() + widest.size();
  const auto columns = static_cast<size_t>(scale.columns_of(timeline.makespan));
  size_t block = std::max<size_t>(columns, 1);
  if (options.width > 0) {
    const auto width = static_cast<size_t>(options.width);
    block = std::min(block, std::max<size_t>(width, margin + 20) - margin);
  }
  std::vector<Row> rows;
  for (size_t rank = 0; rank < schedule.ranks.size(); ++rank) {
    rows.push_back(row_of(schedule, timeline, rank, scale));
  }
  std::string text;
  for (size_t begin = 0; begin < columns; begin += block) {
    if (begin > 0) text += '\n';
    const size_t end = std::min(begin + block, columns);
    for (size_t rank = 0; rank < rows.size(); ++rank) {
      text += fmt::format("rank {:>{}} ", rank, widest.size()) +
              painted(rows[rank], begin, end, options.colour);
      while (text.ends_with(' ')) text.pop_back();
      text += '\n';
    }
  }
  return text;
}

}  // namespace tessera::cli
