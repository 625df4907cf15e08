#include "formats/import/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/utf8.h"
#include "formats/config_io.h"
#include "formats/import/mapper.h"

namespace tessera::formats {
namespace {

/// Fit for a comment or a line of a terminal.
std::string printable(std::string text) {
  for (char& c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) c = ' ';
  }
  return text;
}

std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + text;
  return all;
}

std::string toml_text(const MappedKey& mapped) {
  if (mapped.value) return toml_value(*mapped.value);
  const bool bare = mapped.text == "true" || mapped.text == "false" || number_of(mapped.text);
  return bare ? mapped.text : toml_value(spec::Value{mapped.text});
}

/// How many of the words up to the next flag are that flag's values, as far as the table knows.
size_t values_taken(const Row* row, size_t available) {
  if (row == nullptr || row->rule == Rule::none || row->rule == Rule::list) return available;
  if (row->rule == Rule::sets || row->rule == Rule::flag) return 0;
  return std::min<size_t>(available, 1);
}

bool is_program(const std::string& word) {
  return word.ends_with(".py");
}

bool is_expansion(const std::string& word) {
  return word.starts_with('$') || word.starts_with('`');
}

/// Flags with their values; a word that belongs to none is an entry of its own.
std::vector<Entry> flags_of(const std::vector<ShellWord>& words, const std::string& place) {
  std::vector<Entry> entries;
  for (size_t i = 0; i < words.size();) {
    Entry entry;
    entry.where = fmt::format("{}{}", place, words[i].line);
    const std::string& word = words[i].text;
    if (!is_flag(word)) {
      entry.key = entry.source = word;
      entries.push_back(std::move(entry));
      ++i;
      continue;
    }
    const size_t equals = word.find('=');
    entry.key = word.substr(0, equals);
    entry.source = word;
    std::replace(entry.key.begin(), entry.key.end(), '_', '-');
    size_t available = 0;
    for (size_t k = i; !words[k].ends_command && k + 1 < words.size(); ++k) {
      const std::string& next = words[k + 1].text;
      // What follows a value and is not known may be more arguments.
      if (is_flag(next) || is_program(next) || (k > i && is_expansion(next))) break;
      ++available;
    }
    size_t taken = values_taken(row_of(megatron_rows(), entry.key), available);
    if (equals != std::string::npos) {
      entry.items.push_back(word.substr(equals + 1));
      taken = 0;
    }
    for (size_t k = 1; k <= taken; ++k) {
      entry.items.push_back(words[i + k].text);
      entry.source += " " + words[i + k].text;
    }
    entries.push_back(std::move(entry));
    i += 1 + taken;
  }
  return entries;
}

std::span<const Row> rows_of(System system) {
  switch (system) {
    case System::megatron:
      return megatron_rows();
    case System::deepspeed:
      return deepspeed_rows();
    case System::accelerate:
      return accelerate_rows();
    case System::torchtitan:
      return torchtitan_rows();
  }
  return {};
}

/// The entries, if one of them is a key that the system has: else the input is something else. What
/// a launcher takes does not count.
std::vector<Entry> known(std::vector<Entry> entries, System system, const std::string& where) {
  const std::span<const Row> rows = rows_of(system);
  const bool any = std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) {
    const Row* row = row_of(rows, entry.key);
    return row != nullptr && row->detail != kLauncher;
  });
  if (any) return entries;
  if (system != System::megatron) {
    throw core::ConfigError(fmt::format("{}: no key of {}'s configuration is in it", where,
                                        system_names()[static_cast<size_t>(system)]));
  }
  throw core::ConfigError(
      fmt::format("{}: no training argument of Megatron's was found: give the script that holds "
                  "them (--num-layers 24 …), or, after --, the arguments themselves",
                  where));
}

}  // namespace

const std::vector<std::string_view>& system_names() {
  static const std::vector<std::string_view> names = {"megatron", "deepspeed", "accelerate",
                                                      "torchtitan"};
  return names;
}

std::optional<System> system_named(std::string_view name) {
  const auto& names = system_names();
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<System>(found - names.begin());
}

std::string_view name_of(Unmapped kind) {
  constexpr std::array<std::string_view, 6> names = {
      "no counterpart",         "not in this version", "value not supported",
      "value not in the input", "already so",          "said elsewhere"};
  return names[static_cast<size_t>(kind)];
}

ImportResult import_config(System system, const std::string& text, const std::string& where) {
  const size_t valid = core::utf8_valid_prefix(text);
  if (valid < text.size()) {
    throw core::ConfigError(fmt::format("{}: is no text in UTF-8: byte {}", where, valid));
  }
  switch (system) {
    case System::megatron:
      return map_megatron(
          known(flags_of(read_shell_words(text, where), where + ":"), system, where));
    case System::deepspeed:
      return map_deepspeed(known(read_json_entries(text, where), system, where));
    case System::accelerate:
      return map_accelerate(known(read_yaml_entries(text, where), system, where));
    case System::torchtitan:
      return map_torchtitan(known(read_toml_entries(text, where), system, where));
  }
  return {};
}

ImportResult import_megatron_arguments(const std::vector<std::string>& words) {
  std::vector<ShellWord> arguments;
  for (size_t i = 0; i < words.size(); ++i) {
    if (core::utf8_valid_prefix(words[i]) < words[i].size()) {
      throw core::ConfigError(fmt::format("argument {} is no text in UTF-8", i + 1));
    }
    arguments.push_back({words[i], static_cast<int>(i) + 1, false});
  }
  return map_megatron(
      known(flags_of(arguments, "argument "), System::megatron, "the arguments after --"));
}

std::string to_toml(const ImportResult& result) {
  std::string toml;
  std::vector<std::string> sections;
  const auto section_of = [](const MappedKey& mapped) {
    return mapped.key.substr(0, mapped.key.find('.'));
  };
  for (const spec::Option& option : spec::options()) {
    const std::string section(option.section());
    if (sections.empty() || sections.back() != section) sections.push_back(section);
  }
  for (const MappedKey& mapped : result.mapped) {
    const std::string section = section_of(mapped);
    if (std::find(sections.begin(), sections.end(), section) == sections.end()) {
      sections.push_back(section);
    }
  }
  for (const std::string& section : sections) {
    std::string lines;
    bool real = false;
    for (const MappedKey& mapped : result.mapped) {
      if (section_of(mapped) != section) continue;
      const bool refused = !mapped.refused.empty();
      real = real || !refused;
      lines += fmt::format("{}{} = {}  # {}{}\n", refused ? "# " : "",
                           mapped.key.substr(section.size() + 1), printable(toml_text(mapped)),
                           printable(joined(mapped.sources)),
                           refused ? "; " + printable(mapped.refused) : "");
    }
    if (lines.empty()) continue;
    toml += fmt::format("{}{}[{}]\n{}", toml.empty() ? "" : "\n", real ? "" : "# ", section, lines);
  }
  return toml;
}

std::string to_json(const ImportResult& result) {
  nlohmann::ordered_json json = {{"from", system_names()[static_cast<size_t>(result.system)]},
                                 {"toml", to_toml(result)}};
  json["mapped"] = nlohmann::ordered_json::array();
  for (const MappedKey& mapped : result.mapped) {
    json["mapped"].push_back({{"key", mapped.key},
                              {"value", mapped.text},
                              {"sources", mapped.sources},
                              {"refused", mapped.refused}});
  }
  json["unmapped"] = nlohmann::ordered_json::array();
  for (const UnmappedKey& unmapped : result.unmapped) {
    json["unmapped"].push_back({{"source", unmapped.source},
                                {"where", unmapped.where},
                                {"kind", name_of(unmapped.kind)},
                                {"reason", unmapped.reason}});
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string describe(const ImportResult& result) {
  std::string text;
  for (const Unmapped kind : {Unmapped::value, Unmapped::not_yet, Unmapped::unknown_value,
                              Unmapped::no_counterpart, Unmapped::elsewhere, Unmapped::already}) {
    std::string lines;
    for (const UnmappedKey& unmapped : result.unmapped) {
      if (unmapped.kind != kind) continue;
      lines += fmt::format("  {}: {}{}\n", printable(unmapped.source), printable(unmapped.reason),
                           unmapped.where.empty() ? "" : "  (" + printable(unmapped.where) + ")");
    }
    if (!lines.empty()) text += fmt::format("{}:\n{}", name_of(kind), lines);
  }
  return text;
}

}  // namespace tessera::formats
