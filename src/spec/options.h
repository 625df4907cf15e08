#pragma once

// Every key of a run's configuration, one row each: its type, default, legal values, documentation,
// and how it is read from and written into RunConfig. TOML reading and writing, overrides, the JSON
// schema, validation and the documentation all walk this one table, so a key is described once.

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "spec/run_config.h"

namespace tessera::spec {

/// The type of an option. A choice is one of a list of words.
enum class Kind : uint8_t { boolean, integer, real, text, text_list, integer_list, choice };

/// A value of any kind; a choice is held as its word.
using Value = std::variant<bool, int64_t, double, std::string, std::vector<std::string>,
                           std::vector<int64_t>>;

/// The numbers that an option may take: an interval, and `also`, one value outside it that has a
/// meaning of its own (−1 or 0 for "derived"). Reals must be finite whatever the limits.
struct Limits {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool open_min = false;  ///< min itself is not legal
  bool open_max = false;  ///< max itself is not legal
  std::optional<int64_t> also;
};

struct Option {
  std::string_view key;  ///< "training.steps"
  Kind kind = Kind::integer;
  std::string_view about;
  Limits limits;                          ///< of a number, or of each of a list
  std::vector<std::string_view> choices;  ///< of a choice, in the order of its enumeration
  Value (*get)(const RunConfig&) = nullptr;
  /// Takes a value of the option's kind and, for a choice, one of its words.
  void (*set)(RunConfig&, const Value&) = nullptr;

  std::string_view section() const { return key.substr(0, key.find('.')); }
  std::string_view name() const { return key.substr(key.find('.') + 1); }
};

/// All options, section by section, in the order in which files and documentation list them.
const std::vector<Option>& options();
/// nullptr when there is none of that key.
const Option* find_option(std::string_view key);

/// A key of the documented face that a later version brings. It may be given with the value that
/// means what this version does; anything else is refused by name.
struct LaterOption {
  std::string_view key;
  std::string_view neutral;  ///< as text; empty: no value of it can be used yet
};
const std::vector<LaterOption>& later_options();
const LaterOption* find_later_option(std::string_view key);

/// The value as a person writes it: 3e-4, true, bf16, or "a,b" and "4,3" for lists.
std::string to_text(const Value& value);
/// The value that `text` means for an option: numbers, true/false/on/off/1/0, words, lists divided
/// by commas. Empty when it is not of the option's type, or not one of its choices.
std::optional<Value> from_text(const Option& option, std::string_view text);
/// `value` as the option's type (an integer is a real too, one word or number is a list of one, a
/// boolean is the choice "true" or "false" where there is one); empty when it is of another type,
/// or not one of its choices.
std::optional<Value> coerced(const Option& option, const Value& value);

/// What a value has to be: "a whole number, -1 or at least 1", "cosine, linear, wsd or constant".
std::string legal_text(const Option& option);
/// Whether a value of the option's type is within its limits.
bool is_legal(const Option& option, const Value& value);
/// The nearest legal value as text; empty when there is none to offer.
std::string nearest_legal(const Option& option, const Value& value);

/// The words of files and messages.
std::string_view name_of(Architecture value);
std::string_view name_of(AttentionBias value);
std::string_view name_of(RopeType value);
std::string_view name_of(Precision value);
std::string_view name_of(GradientDtype value);
std::string_view name_of(Numerics value);
std::string_view name_of(Decay value);
std::string_view name_of(Recompute value);
std::string_view name_of(Backend value);

}  // namespace tessera::spec
