#pragma once

// How the keys of another system become ours. Each system has a table, one row a key, and a
// function for what keys mean together; the mapper keeps the books: no key is lost, none counts
// twice, and nothing is called mapped that this version would refuse.

#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/import/entry.h"
#include "formats/import/import.h"
#include "spec/run_config.h"

namespace tessera::formats {

/// What a row does with its key.
enum class Rule : uint8_t {
  same,       ///< the value is the target's
  sets,       ///< a flag without a value: the target becomes `detail`
  given,      ///< a key whose value does not count: the target becomes `detail`
  truth,      ///< a boolean: the target becomes true or false
  words,      ///< `detail` "theirs=ours …" translates; a word not listed has no counterpart
  only,       ///< `detail` lists the values that say what happens here anyway: "1 null"
  reckoned,   ///< read by the system's function, which knows its reasons; takes one value
  flag,       ///< the same, without a value
  list,       ///< the same, with as many values as there are
  none,       ///< no counterpart; `detail` says more, or is empty
  later,      ///< not in this version, whatever it is called then; `detail` is the neutral value
  elsewhere,  ///< `detail` says where
};

/// Reasons that rows of several systems share.
inline constexpr std::string_view kLauncher =
    "the launcher's: tessera launch --nproc-per-node N -- train …";
inline constexpr std::string_view kRunFolder = "the run folder's: --run-dir of tessera train";

struct Row {
  std::string_view source;
  Rule rule = Rule::none;
  std::string_view target;
  std::string_view detail;
};

class Mapper {
 public:
  /// Values that count and that the input does not say (`unsaid` tells), nulls, and keys that are
  /// given again later are set aside at once, so that what is left is each key once.
  Mapper(System system, std::vector<Entry> entries, std::span<const Row> rows,
         bool (*unsaid)(const std::string& item));

  /// The entry of a key; nullptr when it is not there or done with.
  const Entry* find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  /// Whether a flag is there, or a boolean true.
  bool is_on(std::string_view key) const;
  /// The entry's one item; empty when the key is not there or has none or several.
  std::string text(std::string_view key) const;
  /// The same as a number, or a whole one; empty when it is none.
  std::optional<double> number(std::string_view key) const;
  std::optional<int64_t> whole(std::string_view key) const;

  /// Sets a key of ours. The keys of the input that it comes from are done with.
  void set(std::string_view target, const std::string& value,
           std::initializer_list<std::string_view> keys);
  /// Sets a key of ours that is a list to all the values of `key`.
  void set_list(std::string_view target, std::string_view key);
  /// Sets a key of ours from a key that says more than this, and is done with later.
  void set_also(std::string_view target, const std::string& value, std::string_view key);
  /// Sets a key of ours that the input leaves alone to what the other system would take.
  void set_default(std::string_view target, const std::string& value);
  bool is_set(std::string_view target) const;
  /// Says of those keys that are there and not done with why they become nothing.
  void drop(std::initializer_list<std::string_view> keys, Unmapped kind, const std::string& reason);
  /// Notes something of the input that is no key, in the list of what was not mapped.
  void note(const std::string& source, const std::string& where, Unmapped kind,
            const std::string& reason);

  /// Lets the rows have the entries that are left, and sets aside what this version would refuse.
  ImportResult finish();

 private:
  void apply(const Entry& entry);
  void apply(const Entry& entry, const Row& row);
  void add(const std::string& target, const std::string& given, const Entry& entry);
  void refuse(MappedKey& mapped, Unmapped kind, const std::string& reason);
  void judge_each();
  void judge_together();
  std::vector<spec::Violation> violations() const;
  bool refuse_cause(const spec::Violation& violation);

  std::span<const Row> rows_;
  std::vector<Entry> entries_;
  std::vector<bool> done_;
  std::map<std::string, std::vector<size_t>> sources_;  ///< target → entries
  ImportResult result_;
};

/// For Mapper's `unsaid`: "auto" stands for what transformers' Trainer or Accelerate fills in.
bool is_auto(const std::string& item);

/// True for yes, on, true and 1 in any case, false for their opposites.
std::optional<bool> truth_of(const std::string& word);
/// A number as files write it, the whole text.
std::optional<double> number_of(const std::string& text);
std::string to_text(double number);

/// The maps.
ImportResult map_megatron(const std::vector<Entry>& entries);
ImportResult map_deepspeed(std::vector<Entry> entries);
ImportResult map_accelerate(const std::vector<Entry>& entries);
ImportResult map_torchtitan(std::vector<Entry> entries);
/// Their tables. Megatron's tells how many words a flag takes, too.
std::span<const Row> megatron_rows();
std::span<const Row> deepspeed_rows();
std::span<const Row> accelerate_rows();
std::span<const Row> torchtitan_rows();
/// The row of a key; nullptr when there is none.
const Row* row_of(std::span<const Row> rows, std::string_view key);

}  // namespace tessera::formats
