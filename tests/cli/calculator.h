#pragma once

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::cli {

/// Evaluates an expression of numbers, + - * / ( ), and sqrt, ln, min, max of arguments.
class Calculator {
 public:
  explicit Calculator(std::string text) : text_(std::move(text)) {}

  double evaluate() {
    const double value = sum();
    skip();
    if (at_ != text_.size()) fail();
    return value;
  }

 private:
  [[noreturn]] void fail() const {
    throw std::runtime_error("no expression at " + std::to_string(at_) + ": " + text_);
  }
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char wanted) {
    skip();
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }

  double sum() {
    double value = product();
    for (;;) {
      if (take('+')) {
        value += product();
      } else if (take('-')) {
        value -= product();
      } else {
        return value;
      }
    }
  }
  double product() {
    double value = factor();
    for (;;) {
      if (take('*')) {
        value *= factor();
      } else if (take('/')) {
        value /= factor();
      } else {
        return value;
      }
    }
  }
  double factor() {
    if (take('(')) {
      const double value = sum();
      if (!take(')')) fail();
      return value;
    }
    skip();
    if (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_])) != 0) {
      return function();
    }
    char* end = nullptr;
    const double value = std::strtod(text_.c_str() + at_, &end);
    const auto next = static_cast<size_t>(end - text_.c_str());
    if (next == at_) fail();
    at_ = next;
    return value;
  }
  double function() {
    const size_t begin = at_;
    while (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    const std::string_view name(text_.data() + begin, at_ - begin);
    if (!take('(')) fail();
    std::vector<double> values = {sum()};
    while (take(',')) values.push_back(sum());
    if (!take(')')) fail();
    if (name == "sqrt") return std::sqrt(values[0]);
    if (name == "ln") return std::log(values[0]);
    if (name == "min") return *std::min_element(values.begin(), values.end());
    if (name == "max") return *std::max_element(values.begin(), values.end());
    fail();
  }

  std::string text_;
  size_t at_ = 0;
};

}  // namespace tessera::cli
