#pragma once

// What explanations are written with.

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "plan/estimate.h"

namespace tessera::plan {

/// A number in an expression: whole ones with all of their digits, others with six.
std::string term(double number);
inline std::string term(int64_t number) {
  return std::to_string(number);
}
/// Text and numbers one after the other: expression(2, " * ", bytes, " / ", ranks).
template <class... Parts>
std::string expression(const Parts&... parts) {
  const auto text = [](const auto& part) -> std::string {
    if constexpr (std::is_convertible_v<decltype(part), std::string>) {
      return part;
    } else if constexpr (std::is_integral_v<std::decay_t<decltype(part)>>) {
      return term(static_cast<int64_t>(part));
    } else {
      return term(static_cast<double>(part));
    }
  };
  return (text(parts) + ...);
}

/// What each of so many ranks sends of a buffer by a ring: "(n - 1) / n * bytes".
std::string ring_text(const std::string& bytes, int64_t ranks);

class Reasons {
 public:
  /// `values` is the formula's right side with its numbers, `result` what it makes.
  void add(std::string quantity, std::string formula, const std::string& values, double result) {
    list_.push_back({std::move(quantity), std::move(formula), values + " = " + term(result)});
  }
  std::vector<Reason> take() { return std::move(list_); }

 private:
  std::vector<Reason> list_;
};

// The parts of an estimate's explanation.
void explain_parameters(const Case& run, Reasons& reasons);
void explain_memory(const Case& run, const Estimate& estimate, Reasons& reasons);
void explain_traffic(const Case& run, const Estimate& estimate, Reasons& reasons);
void explain_pipeline(const Layout& layout, const Recipe& recipe, Reasons& reasons);
void explain_time(const Case& run, const Constants& constants, const Estimate& estimate,
                  Reasons& reasons);

}  // namespace tessera::plan
