#include "formats/import/mapper.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "core/error.h"
#include "spec/assignment.h"

namespace tessera::formats {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

/// The blank-divided words of `list`.
std::vector<std::string_view> words_of(std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    const size_t blank = std::min(list.find(' '), list.size());
    if (blank > 0) words.push_back(list.substr(0, blank));
    list.remove_prefix(std::min(blank + 1, list.size()));
  }
  return words;
}

/// The same word, truth value or number.
bool means_the_same(const std::string& given, std::string_view expected) {
  const std::string wanted(expected);
  if (lower(given) == wanted) return true;
  if (truth_of(wanted) && truth_of(given) == truth_of(wanted)) return true;
  return number_of(wanted) && number_of(given) == number_of(wanted);
}

/// The value as that of the option; a list is not divided at commas.
std::optional<spec::Value> value_for(const spec::Option& option,
                                     const std::vector<std::string>& items) {
  if (option.kind == spec::Kind::text_list) return spec::Value{items};
  if (option.kind == spec::Kind::integer_list) {
    std::string joined;
    for (const std::string& item : items) joined += item + ",";
    return spec::from_text(option, joined);
  }
  return items.size() == 1 ? spec::from_text(option, items[0]) : std::nullopt;
}

/// A number or a truth value as TOML writes it; other texts as they are.
std::string canonical(const std::string& text) {
  std::string word = lower(text);
  if (word == "true" || word == "false") return word;
  const std::optional<double> number = number_of(text);
  if (!number) return text;
  const bool whole = *number == std::floor(*number) && std::abs(*number) < 9e15;
  return whole ? std::to_string(static_cast<int64_t>(*number)) : to_text(*number);
}

bool value_counts(const Row* row) {
  return row != nullptr && row->rule != Rule::given && row->rule != Rule::none &&
         row->rule != Rule::elsewhere;
}

size_t position_of(const std::string& key) {
  const auto& options = spec::options();
  for (size_t i = 0; i < options.size(); ++i) {
    if (options[i].key == key) return i;
  }
  return options.size();
}

}  // namespace

const Row* row_of(std::span<const Row> rows, std::string_view key) {
  for (const Row& row : rows) {
    if (row.source == key) return &row;
  }
  return nullptr;
}

bool is_auto(const std::string& item) {
  return item == "auto";
}

std::optional<bool> truth_of(const std::string& word) {
  const std::string w = lower(word);
  if (w == "true" || w == "yes" || w == "on" || w == "1") return true;
  if (w == "false" || w == "no" || w == "off" || w == "0") return false;
  return std::nullopt;
}

std::optional<double> number_of(const std::string& text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, number);
  if (result.ec != std::errc() || result.ptr != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::string to_text(double number) {
  return spec::to_text(spec::Value{number});
}

Mapper::Mapper(System system, std::vector<Entry> entries, std::span<const Row> rows,
               bool (*unsaid)(const std::string& item))
    : rows_(rows), entries_(std::move(entries)), done_(entries_.size(), false) {
  result_.system = system;
  std::map<std::string, size_t> last;
  for (size_t i = 0; i < entries_.size(); ++i) last[entries_[i].key] = i;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Entry& entry = entries_[i];
    done_[i] = true;
    if (last[entry.key] != i) {
      note(entry.source, entry.where, Unmapped::already, "given again later, and that counts");
    } else if (value_counts(row_of(rows_, entry.key)) &&
               std::any_of(entry.items.begin(), entry.items.end(), unsaid)) {
      note(entry.source, entry.where, Unmapped::unknown_value,
           "its value is not in the input: put it in place");
    } else if (entry.items.size() == 1 && entry.items[0] == "null") {
      note(entry.source, entry.where, Unmapped::already, "is not set");
    } else {
      done_[i] = false;
    }
  }
}

const Entry* Mapper::find(std::string_view key) const {
  if (key.empty()) return nullptr;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (!done_[i] && entries_[i].key == key) return &entries_[i];
  }
  return nullptr;
}

bool Mapper::is_on(std::string_view key) const {
  const Entry* entry = find(key);
  if (entry == nullptr) return false;
  return entry->items.empty() || (entry->items.size() == 1 && truth_of(entry->items[0]) == true);
}

std::string Mapper::text(std::string_view key) const {
  const Entry* entry = find(key);
  return entry != nullptr && entry->items.size() == 1 ? entry->items[0] : std::string();
}

std::optional<double> Mapper::number(std::string_view key) const {
  return number_of(text(key));
}

std::optional<int64_t> Mapper::whole(std::string_view key) const {
  const std::optional<double> value = number(key);
  if (!value || *value != std::floor(*value) || std::abs(*value) > 9e15) return std::nullopt;
  return static_cast<int64_t>(*value);
}

void Mapper::set(std::string_view target, const std::string& value,
                 std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const Entry* entry = find(key);
    if (entry != nullptr) add(std::string(target), value, *entry);
  }
}

void Mapper::set_list(std::string_view target, std::string_view key) {
  const Entry* entry = find(key);
  if (entry != nullptr) {
    add(std::string(target), spec::to_text(spec::Value{entry->items}), *entry);
  }
}

void Mapper::set_also(std::string_view target, const std::string& value, std::string_view key) {
  const Entry* entry = find(key);
  if (entry == nullptr) return;
  add(std::string(target), value, *entry);
  done_[static_cast<size_t>(entry - entries_.data())] = false;
}

void Mapper::add(const std::string& target, const std::string& given, const Entry& entry) {
  const spec::Option* option = spec::find_option(target);
  const std::string value = option == nullptr ? canonical(given) : given;
  const auto index = static_cast<size_t>(&entry - entries_.data());
  auto found = std::find_if(result_.mapped.begin(), result_.mapped.end(),
                            [&](const MappedKey& mapped) { return mapped.key == target; });
  if (found == result_.mapped.end()) {
    MappedKey mapped;
    mapped.key = target;
    result_.mapped.push_back(std::move(mapped));
    found = result_.mapped.end() - 1;
  } else if (found->text != value) {
    done_[index] = true;
    note(entry.source, entry.where, Unmapped::value,
         "contradicts " + found->sources.front() + ", from which " + target + " = " + found->text);
    return;
  }
  found->text = value;
  if (option != nullptr) {
    // A list's items may hold commas; a value put together from several keys is in `value`.
    const bool list =
        (option->kind == spec::Kind::text_list || option->kind == spec::Kind::integer_list) &&
        entry.items.size() > 1;
    found->value = value_for(*option, list ? entry.items : std::vector<std::string>{value});
  }
  found->sources.push_back(entry.source);
  sources_[target].push_back(index);
  done_[index] = true;
}

bool Mapper::is_set(std::string_view target) const {
  return std::any_of(result_.mapped.begin(), result_.mapped.end(),
                     [&](const MappedKey& mapped) { return mapped.key == target; });
}

void Mapper::set_default(std::string_view target, const std::string& value) {
  if (is_set(target)) return;
  MappedKey mapped;
  mapped.key = std::string(target);
  mapped.text = value;
  if (const spec::Option* option = spec::find_option(target)) {
    mapped.value = value_for(*option, {value});
  }
  mapped.sources.push_back(
      "not given: " + std::string(system_names()[static_cast<size_t>(result_.system)]) +
      "'s default");
  result_.mapped.push_back(std::move(mapped));
}

void Mapper::drop(std::initializer_list<std::string_view> keys, Unmapped kind,
                  const std::string& reason) {
  for (const std::string_view key : keys) {
    const Entry* entry = find(key);
    if (entry == nullptr) continue;
    done_[static_cast<size_t>(entry - entries_.data())] = true;
    note(entry->source, entry->where, kind, reason);
  }
}

void Mapper::note(const std::string& source, const std::string& where, Unmapped kind,
                  const std::string& reason) {
  result_.unmapped.push_back({source, where, kind, reason});
}

void Mapper::apply(const Entry& entry) {
  const Row* row = row_of(rows_, entry.key);
  if (row != nullptr) {
    apply(entry, *row);
  } else {
    note(entry.source, entry.where, Unmapped::no_counterpart, "no counterpart here");
  }
}

void Mapper::apply(const Entry& entry, const Row& row) {
  const std::string value = entry.items.size() == 1 ? entry.items[0] : std::string();
  const auto say = [&](Unmapped kind, const std::string& reason) {
    note(entry.source, entry.where, kind, reason);
  };
  const std::string detail(row.detail);
  switch (row.rule) {
    case Rule::same:
      if (entry.items.empty()) return say(Unmapped::value, "has no value");
      return add(std::string(row.target), spec::to_text(spec::Value{entry.items}), entry);
    case Rule::sets:
    case Rule::given:
      return add(std::string(row.target), detail, entry);
    case Rule::truth: {
      const std::optional<bool> truth = truth_of(value);
      if (!truth) return say(Unmapped::value, "is neither true nor false");
      return add(std::string(row.target), *truth ? "true" : "false", entry);
    }
    case Rule::words:
      for (const std::string_view pair : words_of(row.detail)) {
        const size_t equals = pair.find('=');
        if (!means_the_same(value, pair.substr(0, equals))) continue;
        return add(std::string(row.target), std::string(pair.substr(equals + 1)), entry);
      }
      return say(Unmapped::value, std::string(row.target) + " has no such value");
    case Rule::only:
    case Rule::later:
      for (const std::string_view word : words_of(row.detail)) {
        if (means_the_same(value, word)) return say(Unmapped::already, "so it is here anyway");
      }
      if (row.rule == Rule::later) return say(Unmapped::not_yet, "not in this version");
      return say(Unmapped::value, "here it can only be " + detail);
    case Rule::reckoned:
    case Rule::flag:
    case Rule::list:
    case Rule::none:
      return say(Unmapped::no_counterpart, detail.empty() ? "no counterpart here" : detail);
    case Rule::elsewhere:
      return say(Unmapped::elsewhere, detail);
  }
}

void Mapper::refuse(MappedKey& mapped, Unmapped kind, const std::string& reason) {
  mapped.refused = reason;
  for (const size_t index : sources_[mapped.key]) {
    note(entries_[index].source, entries_[index].where, kind,
         mapped.key + " = " + mapped.text + ": " + reason);
  }
}

void Mapper::judge_each() {
  for (MappedKey& mapped : result_.mapped) {
    if (const spec::Option* option = spec::find_option(mapped.key)) {
      if (mapped.value && spec::is_legal(*option, *mapped.value)) continue;
      refuse(mapped, Unmapped::value, "has to be " + spec::legal_text(*option));
    } else if (const spec::LaterOption* later = spec::find_later_option(mapped.key);
               later == nullptr || mapped.text != later->neutral) {
      refuse(mapped, Unmapped::not_yet, "not in this version");
    }
  }
}

/// What the validator finds in the keys that are not refused.
std::vector<spec::Violation> Mapper::violations() const {
  std::vector<spec::Assignment> assignments;
  for (const MappedKey& mapped : result_.mapped) {
    if (!mapped.refused.empty()) continue;
    spec::Assignment assignment;
    assignment.key = mapped.key;
    assignment.value = mapped.value;
    assignment.text = mapped.text;
    assignments.push_back(std::move(assignment));
  }
  return spec::all_violations(spec::assign(assignments), 0);
}

/// Refuses the key without which the violation of another, that the input leaves alone, is gone.
bool Mapper::refuse_cause(const spec::Violation& violation) {
  for (MappedKey& mapped : result_.mapped) {
    if (!mapped.refused.empty()) continue;
    const std::string reason = violation.key + " = " + violation.value + " " + violation.why;
    mapped.refused = reason;
    const std::vector<spec::Violation> left = violations();
    const bool gone = std::none_of(left.begin(), left.end(), [&](const spec::Violation& other) {
      return other.key == violation.key;
    });
    mapped.refused.clear();
    if (!gone) continue;
    refuse(mapped, Unmapped::value, reason);
    return true;
  }
  return false;
}

/// What the validator finds between keys; asked again until it finds nothing that came from here.
void Mapper::judge_together() {
  std::vector<spec::Violation> found;
  for (bool again = true; again;) {
    again = false;
    found = violations();
    for (const spec::Violation& violation : found) {
      for (MappedKey& mapped : result_.mapped) {
        if (mapped.key != violation.key || !mapped.refused.empty()) continue;
        refuse(mapped, Unmapped::value, violation.why);
        again = true;
      }
    }
    for (const spec::Violation& violation : found) {
      if (again) break;
      again = violation.key != "data.path" && refuse_cause(violation);
    }
  }
  for (const spec::Violation& violation : found) {
    if (violation.key == "data.path") continue;  // is missing by nature
    note(violation.key, "", Unmapped::value, violation.why);
  }
}

ImportResult Mapper::finish() {
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (done_[i]) continue;
    done_[i] = true;
    apply(entries_[i]);
  }
  std::stable_sort(result_.mapped.begin(), result_.mapped.end(),
                   [](const MappedKey& a, const MappedKey& b) {
                     return position_of(a.key) < position_of(b.key);
                   });
  judge_each();
  judge_together();
  return std::move(result_);
}

}  // namespace tessera::formats
