#include "cli/flag_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace tessera::cli {

std::optional<double> scaled_number(std::string_view text) {
  double number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc()) return std::nullopt;
  const std::string_view unit(result.ptr,
                              static_cast<size_t>(text.data() + text.size() - result.ptr));
  constexpr std::array<std::pair<std::string_view, double>, 9> kUnits = {{{"", 1},
                                                                          {"k", 1e3},
                                                                          {"K", 1e3},
                                                                          {"M", 1e6},
                                                                          {"m", 1e6},
                                                                          {"B", 1e9},
                                                                          {"b", 1e9},
                                                                          {"G", 1e9},
                                                                          {"T", 1e12}}};
  for (const auto& [name, factor] : kUnits) {
    if (unit == name && number > 0 && std::isfinite(number * factor)) return number * factor;
  }
  return std::nullopt;
}

std::string range_text(double least, double most) {
  return fmt::format("from {:g} to {:g}", least, most);
}

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t value = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

void FlagReader::add(const std::string& flag, std::string why, std::string suggest) {
  violations_.push_back({flag, text(flag), std::move(why), std::move(suggest), "--" + flag});
}

int64_t FlagReader::count(const std::string& flag, int64_t otherwise, int64_t least, int64_t most) {
  if (!has(flag)) return otherwise;
  const std::optional<int64_t> value = whole_number(text(flag));
  if (value && *value >= least && *value <= most) return *value;
  add(flag, "is not a whole number from " + std::to_string(least) + " to " + std::to_string(most),
      std::to_string(std::clamp(value.value_or(otherwise), least, most)));
  return otherwise;
}

double FlagReader::number(const std::string& flag, const char* example, double least, double most) {
  if (!has(flag)) return 0;
  const std::optional<double> value = scaled_number(text(flag));
  if (value && *value >= least && *value <= most) return *value;
  add(flag, value ? "is not " + range_text(least, most) : "is not a number above 0", example);
  return 0;
}

void FlagReader::refuse_choice(const std::string& flag,
                               const std::vector<std::string_view>& names) {
  const std::string_view nearest = spec::nearest_name(text(flag), names);
  add(flag, "is none of " + spec::join_or({names.begin(), names.end()}),
      std::string(nearest.empty() ? names.front() : nearest));
}

}  // namespace tessera::cli
