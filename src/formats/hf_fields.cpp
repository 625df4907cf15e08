#include "formats/hf_fields.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace tessera::formats {

using nlohmann::json;

const json* HfFields::any(const std::string& key) {
  read_.insert(key);
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

bool HfFields::is_absent(const std::string& key) const {
  return !object_.contains(key);
}

std::string HfFields::value_text(const std::string& key) const {
  const auto found = object_.find(key);
  if (found == object_.end()) return "absent";
  constexpr size_t kMost = 60;
  std::string text = found->dump(-1, ' ', true, json::error_handler_t::replace);
  if (text.size() > kMost) text = text.substr(0, kMost) + "…";
  return text;
}

void HfFields::problem(const std::string& key, const std::string& why) {
  problems_.push_back(fmt::format("{}{} = {}: {}", prefix_, key, value_text(key), why));
}

std::optional<int64_t> HfFields::integer(const std::string& key) {
  const json* value = any(key);
  if (value == nullptr) return std::nullopt;
  const bool fits = value->is_number_integer() &&
                    !(value->is_number_unsigned() && value->get<uint64_t>() > uint64_t{INT64_MAX});
  if (fits) return value->get<int64_t>();
  problem(key, "has to be a whole number");
  return std::nullopt;
}

std::optional<double> HfFields::real(const std::string& key) {
  const json* value = any(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_number() && std::isfinite(value->get<double>())) return value->get<double>();
  problem(key, "has to be a number");
  return std::nullopt;
}

std::optional<bool> HfFields::boolean(const std::string& key) {
  const json* value = any(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  problem(key, "has to be true or false");
  return std::nullopt;
}

std::optional<std::string> HfFields::text(const std::string& key) {
  const json* value = any(key);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  problem(key, "has to be a text");
  return std::nullopt;
}

const json* HfFields::object(const std::string& key) {
  const json* value = any(key);
  if (value == nullptr || value->is_object()) return value;
  problem(key, "has to be an object, {…}, or null");
  return nullptr;
}

int64_t HfFields::required(const std::string& key, const std::string& alias) {
  const std::optional<int64_t> value = integer(key);
  const std::optional<int64_t> other = alias.empty() ? std::nullopt : integer(alias);
  if (value && other && *value != *other) {
    problem(key, fmt::format("{} = {} says otherwise", alias, *other));
  }
  if (!value && !other && any(key) == nullptr) problem(key, "it is needed to know the model");
  return value.value_or(other.value_or(0));
}

void HfFields::expect(const std::string& key, const json& value, const std::string& why) {
  const json* found = any(key);
  if (found != nullptr && *found != value) problem(key, why);
}

void HfFields::ignore(const std::vector<std::string_view>& keys) {
  read_.insert(keys.begin(), keys.end());
}

std::vector<std::string> HfFields::unread() const {
  std::vector<std::string> keys;
  for (const auto& item : object_.items()) {
    if (!item.value().is_null() && read_.count(item.key()) == 0) {
      keys.push_back(prefix_ + item.key());
    }
  }
  return keys;
}

}  // namespace tessera::formats
