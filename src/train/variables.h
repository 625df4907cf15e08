#pragma once

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"
#include "train/environment.h"

namespace tessera::train {

constexpr int kMaxWorld = 1 << 20;

/// Reads variables and complains about them by name.
class Variables {
 public:
  explicit Variables(const EnvironmentLookup& lookup) : lookup_(lookup) {}

  std::optional<std::string> text(const char* name) const {
    const char* value = lookup_(name);
    if (value == nullptr || *value == '\0') return std::nullopt;
    return value;
  }

  bool has(const char* name) const { return text(name).has_value(); }

  std::optional<int> number(const char* name, int lowest, int highest) const {
    const std::optional<std::string> value = text(name);
    if (!value) return std::nullopt;
    return parse(name, *value, *value, lowest, highest);
  }

  /// The first entry of a list: OMP_NUM_THREADS may give a number for each level of nesting.
  std::optional<int> first_number(const char* name, int lowest, int highest) const {
    const std::optional<std::string> value = text(name);
    if (!value) return std::nullopt;
    return parse(name, *value, std::string_view(*value).substr(0, value->find(',')), lowest,
                 highest);
  }

 private:
  static int parse(const char* name, const std::string& value, std::string_view digits, int lowest,
                   int highest) {
    int number = 0;
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, number);
    if (error != std::errc() || stop != end) {
      throw core::ConfigError(
          fmt::format("{}={} (from the environment) is not a whole number from {} to {}", name,
                      value, lowest, highest));
    }
    if (number < lowest || number > highest) {
      throw core::ConfigError(fmt::format("{}={} (from the environment) is out of range: {} to {}",
                                          name, value, lowest, highest));
    }
    return number;
  }

  const EnvironmentLookup& lookup_;
};

}  // namespace tessera::train
