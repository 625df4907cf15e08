#include "spec/assignment.h"

#include <algorithm>
#include <set>

#include "spec/nearest.h"

namespace tessera::spec {
namespace {

std::string normalised(std::string key) {
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

std::string section_of(const std::string& key) {
  return key.substr(0, key.find('.'));
}
std::string name_of_key(const std::string& key) {
  return key.substr(key.find('.') + 1);
}

std::vector<std::string_view> known_keys() {
  std::vector<std::string_view> keys;
  for (const Option& option : options()) keys.push_back(option.key);
  for (const LaterOption& option : later_options()) keys.push_back(option.key);
  return keys;
}

Violation violation_of(const Assignment& assignment, std::string why, std::string suggest) {
  Violation violation;
  violation.key = assignment.key;
  violation.value = assignment.text;
  violation.why = std::move(why);
  violation.suggest = std::move(suggest);
  violation.where = assignment.where;
  return violation;
}

/// Whether it asks for just what this version does.
bool is_neutral(const LaterOption& option, const Assignment& assignment) {
  if (option.neutral.empty()) return false;
  const std::string text = assignment.value ? to_text(*assignment.value) : assignment.text;
  return text == option.neutral;
}

Violation not_yet(const LaterOption& option, const Assignment& assignment) {
  const bool has_neutral = !option.neutral.empty();
  return violation_of(assignment, "this version does not have it yet",
                      has_neutral ? std::string(option.neutral) : "leave it out");
}

Violation wrong_value(const Option& option, const Assignment& assignment) {
  std::string why = "has to be " + legal_text(option);
  const Value given = assignment.value.value_or(Value{assignment.text});
  if (option.key == "comm.backend" && assignment.text == "mpi") {
    why = "this version does not have it yet; " + why;
  }
  return violation_of(assignment, std::move(why), nearest_legal(option, given));
}

Violation unknown_preset(const Assignment& assignment) {
  std::vector<std::string_view> names;
  std::vector<std::string> all;
  for (const ModelPreset& preset : model_presets()) {
    names.push_back(preset.name);
    all.emplace_back(preset.name);
  }
  const std::string name = assignment.value ? to_text(*assignment.value) : assignment.text;
  const std::string_view nearest = nearest_name(name, names);
  return violation_of(assignment, "no preset has this name; there are " + join_or(all),
                      std::string(nearest));
}

/// The option and its new value; records a violation and gives nothing when that cannot be.
std::optional<std::pair<const Option*, Value>> read(const Assignment& assignment,
                                                    std::vector<Violation>& violations) {
  if (const LaterOption* later = find_later_option(assignment.key)) {
    if (!is_neutral(*later, assignment)) violations.push_back(not_yet(*later, assignment));
    return std::nullopt;
  }
  const Option* option = find_option(assignment.key);
  if (option == nullptr) {
    Violation violation = unknown_key(assignment.key);
    violation.value = assignment.text;
    violation.where = assignment.where;
    violations.push_back(violation);
    return std::nullopt;
  }
  std::optional<Value> value;
  if (!assignment.unsupported) {
    value = assignment.value ? coerced(*option, *assignment.value)
                             : from_text(*option, assignment.text);
  }
  if (!value) {
    violations.push_back(wrong_value(*option, assignment));
    return std::nullopt;
  }
  return std::pair{option, *std::move(value)};
}

}  // namespace

Violation unknown_key(const std::string& key) {
  const std::vector<std::string_view> keys = known_keys();
  std::vector<std::string_view> sections;
  for (const std::string_view known : keys) {
    const std::string_view section = known.substr(0, known.find('.'));
    if (std::find(sections.begin(), sections.end(), section) == sections.end()) {
      sections.push_back(section);
    }
  }
  const std::string given = section_of(key);
  const bool known_section = std::find(sections.begin(), sections.end(), given) != sections.end();
  const std::string section = known_section ? given : std::string(nearest_name(given, sections));

  std::vector<std::string_view> names_in_section;
  std::vector<std::string> same_name;
  for (const std::string_view known : keys) {
    const std::string_view name = known.substr(known.find('.') + 1);
    if (known.substr(0, known.find('.')) == section) names_in_section.push_back(name);
    if (name == name_of_key(key)) same_name.emplace_back(known);
  }
  Violation violation;
  violation.key = key;
  if (known_section && key == given) {
    violation.why = "is a section, not a key";
    violation.suggest = "[" + given + "], and its keys below";
    return violation;
  }
  violation.why = known_section ? "no key of [" + given + "] has this name"
                                : "no section has the name [" + given + "]";
  // A near name in the section first; then the same name in another; then what there is.
  const std::string_view near = nearest_name(name_of_key(key), names_in_section);
  if (!near.empty()) {
    violation.suggest = section + "." + std::string(near);
  } else if (!same_name.empty()) {
    violation.suggest = join_or(same_name);
  } else {
    const auto& listed = known_section ? names_in_section : sections;
    std::vector<std::string> sorted(listed.begin(), listed.end());
    std::sort(sorted.begin(), sorted.end());
    violation.suggest = join_or(sorted);
  }
  return violation;
}

AssignmentResult assign(const std::vector<Assignment>& assignments,
                        const std::optional<ModelConfig>& hf) {
  AssignmentResult result;
  std::vector<std::pair<const Option*, Value>> settings;
  std::optional<ModelConfig> base;
  for (Assignment assignment : assignments) {
    assignment.key = normalised(assignment.key);
    auto setting = read(assignment, result.violations);
    if (!setting) continue;
    if (setting->first->key == "model.preset") {
      const std::string& name = std::get<std::string>(setting->second);
      const ModelPreset* preset = find_model_preset(name);
      if (preset == nullptr && !name.empty()) {
        result.violations.push_back(unknown_preset(assignment));
        continue;
      }
      base = preset == nullptr ? std::nullopt : std::optional(preset->config);
      if (!name.empty()) settings.emplace_back(find_option("model.hf"), Value(std::string()));
    }
    if (setting->first->key == "model.hf" && !std::get<std::string>(setting->second).empty()) {
      base = hf;
      settings.emplace_back(find_option("model.preset"), Value(std::string()));
    }
    result.origin[assignment.key] = assignment;
    settings.push_back(*std::move(setting));
  }
  // Without a preset, what keys start from is the family's.
  for (const auto& [option, value] : settings) {
    if (option->key == "model.architecture") option->set(result.config, value);
  }
  result.config.model = base ? *base : family_defaults(result.config.model.architecture);
  for (const auto& setting : settings) setting.first->set(result.config, setting.second);
  return result;
}

std::vector<Violation> all_violations(const AssignmentResult& result, int64_t world_size) {
  std::vector<Violation> violations = result.violations;
  std::set<std::string> judged;
  for (const Violation& violation : violations) judged.insert(violation.key);
  for (Violation violation : validate(result.config, world_size)) {
    if (judged.count(violation.key) != 0) continue;
    const auto origin = result.origin.find(violation.key);
    if (origin != result.origin.end()) {
      violation.value = origin->second.text;
      violation.where = origin->second.where;
    }
    violations.push_back(std::move(violation));
  }
  return violations;
}

}  // namespace tessera::spec
