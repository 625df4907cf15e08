#pragma once

// Texts of flags as numbers and words, with every mistake kept and not only the first.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spec/nearest.h"
#include "spec/run_config.h"

namespace tessera::cli {

/// "2e12", "7B", "13.5M", "150T": a number above 0, with a power of ten behind it or without; else
/// nothing.
std::optional<double> scaled_number(std::string_view text);

/// What bytes or FLOPs in a second may be: a rate that is slower makes steps that take longer than
/// numbers hold, and says only that the unit was mistaken.
constexpr double kLeastRate = 1e3;
/// Beyond every number that a plan is made of.
constexpr double kMostOfAnything = 1e30;
/// "from 1000 to 1e+30".
std::string range_text(double least, double most = kMostOfAnything);

/// The whole number that a text is, all of it.
std::optional<int64_t> whole_number(std::string_view text);

/// A flag is named without dashes; one that was not given has an empty text.
class FlagReader {
 public:
  explicit FlagReader(std::map<std::string, std::string> values) : values_(std::move(values)) {}

  bool has(const std::string& flag) const { return !values_.at(flag).empty(); }
  const std::string& text(const std::string& flag) const { return values_.at(flag); }
  void set(const std::string& flag, std::string value) { values_.at(flag) = std::move(value); }
  const std::map<std::string, std::string>& values() const { return values_; }

  /// What is wrong with a flag's value.
  void add(const std::string& flag, std::string why, std::string suggest);
  std::vector<spec::Violation>& violations() { return violations_; }

  /// The value, or `otherwise` where it was not given or is a mistake.
  int64_t count(const std::string& flag, int64_t otherwise, int64_t least = 1,
                int64_t most = int64_t{1} << 40);
  /// A scaled number from `least` to `most`; 0 where it was not given or is a mistake.
  double number(const std::string& flag, const char* example, double least = 0,
                double most = kMostOfAnything);
  template <class Value>
  Value choice(const std::string& flag,
               const std::vector<std::pair<std::string_view, Value>>& choices, Value otherwise) {
    if (!has(flag)) return otherwise;
    std::vector<std::string_view> names;
    for (const auto& [name, value] : choices) {
      if (text(flag) == name) return value;
      names.push_back(name);
    }
    refuse_choice(flag, names);
    return otherwise;
  }

 private:
  void refuse_choice(const std::string& flag, const std::vector<std::string_view>& names);

  std::map<std::string, std::string> values_;
  std::vector<spec::Violation> violations_;
};

}  // namespace tessera::cli
