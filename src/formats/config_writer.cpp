#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "formats/config_io.h"

namespace tessera::formats {
namespace {

using nlohmann::ordered_json;
using spec::Kind;
using spec::Option;

/// A TOML basic string.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\u{:04x}", byte);
    } else {
      result += c;
    }
  }
  return result + '"';
}

ordered_json json_value(const spec::Value& value) {
  return std::visit([](const auto& concrete) -> ordered_json { return concrete; }, value);
}

/// The place of a key's own name in an object: below one object for each dot.
ordered_json& nested(ordered_json& object, std::string_view name) {
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) return object[std::string(name)];
  return nested(object[std::string(name.substr(0, dot))], name.substr(dot + 1));
}

void add_limits(const spec::Limits& limits, ordered_json& schema) {
  ordered_json interval = ordered_json::object();
  const double infinity = std::numeric_limits<double>::infinity();
  if (limits.min > -infinity)
    interval[limits.open_min ? "exclusiveMinimum" : "minimum"] = limits.min;
  if (limits.max < infinity)
    interval[limits.open_max ? "exclusiveMaximum" : "maximum"] = limits.max;
  if (limits.also) {
    schema["anyOf"] = ordered_json::array({interval, {{"const", *limits.also}}});
  } else {
    schema.update(interval);
  }
}

ordered_json schema_of(const Option& option) {
  ordered_json schema;
  schema["description"] = option.about;
  schema["default"] = json_value(option.get(spec::RunConfig{}));
  switch (option.kind) {
    case Kind::boolean:
      schema["type"] = "boolean";
      break;
    case Kind::integer:
      schema["type"] = "integer";
      break;
    case Kind::real:
      schema["type"] = "number";
      break;
    case Kind::text:
      schema["type"] = "string";
      break;
    case Kind::text_list:
      schema["type"] = ordered_json::array({"string", "array"});
      schema["items"] = {{"type", "string"}};
      break;
    case Kind::integer_list:
      schema["type"] = ordered_json::array({"integer", "array"});
      schema["items"] = {{"type", "integer"}};
      add_limits(option.limits, schema["items"]);
      break;
    case Kind::choice:
      schema["enum"] = option.choices;
      for (const std::string_view word : option.choices) {
        if (word == "true") schema["enum"].insert(schema["enum"].end(), {true, false});
      }
      break;
  }
  if (option.kind == Kind::integer || option.kind == Kind::real) add_limits(option.limits, schema);
  return schema;
}

/// A key of a later version may be given as what this version does, and so have only that value.
ordered_json schema_of(const spec::LaterOption& option) {
  ordered_json value = ordered_json::parse(option.neutral, nullptr, false);
  if (value.is_discarded()) value = option.neutral;
  return {{"description", "in this version only this value"}, {"const", value}};
}

/// The place of a key's schema among `properties`: in the properties of an object for each dot.
ordered_json& property_at(ordered_json& properties, std::string_view key) {
  const size_t dot = key.find('.');
  ordered_json& entry = properties[std::string(key.substr(0, dot))];
  if (dot == std::string_view::npos) return entry;
  if (entry.is_null()) {
    entry = {{"type", "object"},
             {"additionalProperties", false},
             {"properties", ordered_json::object()}};
  }
  return property_at(entry["properties"], key.substr(dot + 1));
}

}  // namespace

std::string toml_value(const spec::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return quoted(*text);
  if (const auto* texts = std::get_if<std::vector<std::string>>(&value)) {
    std::string list;
    for (const std::string& text : *texts) list += (list.empty() ? "" : ", ") + quoted(text);
    return "[" + list + "]";
  }
  if (const auto* integers = std::get_if<std::vector<int64_t>>(&value)) {
    return fmt::format("[{}]", fmt::join(*integers, ", "));
  }
  std::string text = spec::to_text(value);
  // TOML tells a real from an integer by its point, exponent or name.
  if (std::holds_alternative<double>(value) && text.find_first_of(".enai") == std::string::npos) {
    text += ".0";
  }
  return text;
}

std::string to_toml(const spec::RunConfig& config) {
  std::string text;
  std::string_view section;
  for (const Option& option : spec::options()) {
    if (option.section() != section) {
      section = option.section();
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
    }
    text += fmt::format("{} = {}\n", option.name(), toml_value(option.get(config)));
  }
  return text;
}

std::string to_json(const spec::RunConfig& config) {
  ordered_json sections;
  for (const Option& option : spec::options()) {
    nested(sections, option.key) = json_value(option.get(config));
  }
  return sections.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

std::string to_json_schema() {
  ordered_json sections = ordered_json::object();
  for (const Option& option : spec::options()) {
    property_at(sections, option.key) = schema_of(option);
  }
  for (const spec::LaterOption& option : spec::later_options()) {
    if (!option.neutral.empty()) property_at(sections, option.key) = schema_of(option);
  }
  const ordered_json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                               {"title", "Tessera run"},
                               {"type", "object"},
                               {"additionalProperties", false},
                               {"properties", sections}};
  return schema.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

std::string describe(const std::vector<spec::Violation>& violations, const std::string& what) {
  std::string text = violations.size() == 1
                         ? fmt::format("the {} has a mistake:\n", what)
                         : fmt::format("the {} has {} mistakes:\n", what, violations.size());
  for (const spec::Violation& violation : violations) {
    text += "\n  " + violation.key;
    if (!violation.value.empty()) text += " = " + violation.value;
    if (!violation.where.empty() && violation.where != violation.key) {
      text += "   (" + violation.where + ")";
    }
    text += "\n    " + violation.why + "\n";
    if (!violation.suggest.empty()) text += "    try: " + violation.suggest + "\n";
  }
  return text;
}

std::string to_json(const std::vector<spec::Violation>& violations) {
  ordered_json list = ordered_json::array();
  for (const spec::Violation& violation : violations) {
    list.push_back({{"key", violation.key},
                    {"value", violation.value},
                    {"why", violation.why},
                    {"suggest", violation.suggest},
                    {"where", violation.where}});
  }
  return list.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace tessera::formats
