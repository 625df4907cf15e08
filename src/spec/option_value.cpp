// Values of options as text, and what of them is legal.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "spec/nearest.h"
#include "spec/options.h"
#include "spec/text.h"

namespace tessera::spec {
namespace {

std::string real_text(double value) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return {buffer, end};
}

std::optional<Value> integer_from(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Value> real_from(std::string_view text) {
  const std::string copy(text);
  char* end = nullptr;
  const double value = std::strtod(copy.c_str(), &end);
  if (copy.empty() || end != copy.c_str() + copy.size()) return std::nullopt;
  return value;
}

std::optional<Value> boolean_from(std::string_view text) {
  if (text == "true" || text == "on" || text == "1") return true;
  if (text == "false" || text == "off" || text == "0") return false;
  return std::nullopt;
}

std::vector<std::string> list_from(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view word = trimmed(text.substr(0, comma));
    if (!word.empty()) words.emplace_back(word);
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return words;
}

/// Empty when one of them is no whole number.
std::optional<Value> integers_from(const std::vector<std::string>& words) {
  std::vector<int64_t> integers;
  for (const std::string& word : words) {
    const std::optional<Value> integer = integer_from(word);
    if (!integer) return std::nullopt;
    integers.push_back(std::get<int64_t>(*integer));
  }
  return integers;
}

bool is_choice(const Option& option, const std::string& word) {
  return std::find(option.choices.begin(), option.choices.end(), word) != option.choices.end();
}

bool within(const Limits& limits, double number) {
  if (!std::isfinite(number)) return false;
  if (limits.also && number == static_cast<double>(*limits.also)) return true;
  const bool low = limits.open_min ? number > limits.min : number >= limits.min;
  const bool high = limits.open_max ? number < limits.max : number <= limits.max;
  return low && high;
}

std::string interval_text(const Limits& limits) {
  std::string text;
  if (limits.also) text = std::to_string(*limits.also) + " or ";
  const bool has_min = std::isfinite(limits.min);
  const bool has_max = std::isfinite(limits.max);
  if (has_min) text += (limits.open_min ? "above " : "at least ") + real_text(limits.min);
  if (has_min && has_max) text += " and ";
  if (has_max) text += (limits.open_max ? "below " : "at most ") + real_text(limits.max);
  return text;
}

}  // namespace

std::string to_text(const Value& value) {
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const auto* integer = std::get_if<int64_t>(&value)) return std::to_string(*integer);
  if (const auto* real = std::get_if<double>(&value)) return real_text(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  std::string joined;
  const auto add = [&joined](const std::string& word) {
    joined += (joined.empty() ? "" : ",") + word;
  };
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&value)) {
    for (const int64_t integer : *integers) add(std::to_string(integer));
  } else {
    for (const std::string& word : std::get<std::vector<std::string>>(value)) add(word);
  }
  return joined;
}

std::optional<Value> from_text(const Option& option, std::string_view given) {
  const std::string_view text = trimmed(given);
  switch (option.kind) {
    case Kind::boolean:
      return boolean_from(text);
    case Kind::integer:
      return integer_from(text);
    case Kind::real:
      return real_from(text);
    case Kind::text:
      return std::string(given);
    case Kind::text_list:
      return list_from(text);
    case Kind::integer_list:
      return integers_from(list_from(text));
    case Kind::choice:
      return coerced(option, std::string(text));
  }
  return std::nullopt;
}

std::optional<Value> coerced(const Option& option, const Value& value) {
  const auto* integer = std::get_if<int64_t>(&value);
  const auto* text = std::get_if<std::string>(&value);
  switch (option.kind) {
    case Kind::boolean:
      return std::holds_alternative<bool>(value) ? std::optional(value) : std::nullopt;
    case Kind::integer:
      return integer != nullptr ? std::optional(value) : std::nullopt;
    case Kind::real:
      if (integer != nullptr) return static_cast<double>(*integer);
      return std::holds_alternative<double>(value) ? std::optional(value) : std::nullopt;
    case Kind::text:
      return text != nullptr ? std::optional(value) : std::nullopt;
    case Kind::text_list:
      if (text != nullptr) return std::vector<std::string>{*text};
      if (std::holds_alternative<std::vector<std::string>>(value)) return value;
      return std::nullopt;
    case Kind::integer_list: {
      if (integer != nullptr) return std::vector<int64_t>{*integer};
      if (std::holds_alternative<std::vector<int64_t>>(value)) return value;
      // Of an empty list nothing says what it is a list of.
      const auto* texts = std::get_if<std::vector<std::string>>(&value);
      if (texts == nullptr || !texts->empty()) return std::nullopt;
      return std::vector<int64_t>{};
    }
    case Kind::choice: {
      const bool boolean = std::holds_alternative<bool>(value);
      if (boolean && is_choice(option, to_text(value))) return to_text(value);
      return text != nullptr && is_choice(option, *text) ? std::optional(value) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::string legal_text(const Option& option) {
  switch (option.kind) {
    case Kind::boolean:
      return "true or false";
    case Kind::integer:
      return "a whole number, " + interval_text(option.limits);
    case Kind::real:
      return "a number, " + interval_text(option.limits);
    case Kind::text:
      return "a text";
    case Kind::text_list:
      return "a text or a list of texts";
    case Kind::integer_list:
      return "a list of whole numbers, each " + interval_text(option.limits);
    case Kind::choice:
      return join_or({option.choices.begin(), option.choices.end()});
  }
  return {};
}

bool is_legal(const Option& option, const Value& value) {
  if (!coerced(option, value)) return false;
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    return within(option.limits, static_cast<double>(*integer));
  }
  if (const auto* real = std::get_if<double>(&value)) return within(option.limits, *real);
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&value)) {
    return std::all_of(integers->begin(), integers->end(), [&option](int64_t integer) {
      return within(option.limits, static_cast<double>(integer));
    });
  }
  return true;
}

std::string nearest_legal(const Option& option, const Value& value) {
  if (option.kind == Kind::choice) {
    const auto* word = std::get_if<std::string>(&value);
    return word == nullptr ? std::string{} : std::string(nearest_name(*word, option.choices));
  }
  const Limits& limits = option.limits;
  double number = 0;
  if (const auto* integer = std::get_if<int64_t>(&value)) {
    number = static_cast<double>(*integer);
  } else if (const auto* real = std::get_if<double>(&value); real != nullptr && *real == *real) {
    number = *real;
  } else {
    return {};
  }
  // An open end has no nearest number; a default lies inside, so that is offered.
  const bool low = number < limits.min || (limits.open_min && number == limits.min);
  if ((low && limits.open_min) || (!low && limits.open_max) || !std::isfinite(number)) {
    return to_text(option.get(RunConfig{}));
  }
  const double clamped = std::clamp(number, limits.min, limits.max);
  if (option.kind == Kind::integer) return std::to_string(static_cast<int64_t>(clamped));
  return real_text(clamped);
}

}  // namespace tessera::spec
