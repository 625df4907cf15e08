#pragma once

// What the readers of the four forms give to the maps: keys with values, in the order of the
// text (of JSON, whose objects have none, in that of the names).

#include <string>
#include <string_view>
#include <vector>

namespace tessera::formats {

/// One key of the input with its value. A scalar or a flag's value is one item; a list is several;
/// a flag without a value, an empty list and an empty table have none.
struct Entry {
  std::string key;                 ///< "--micro-batch-size", "zero_optimization.stage"
  std::vector<std::string> items;  ///< null is "null", booleans are "true" and "false"
  std::string source;              ///< key and value as the input has them
  std::string where;
};

/// Leaves of the document, their keys joined by dots. Throw ConfigError that names the place.
std::vector<Entry> read_json_entries(const std::string& text, const std::string& where);
std::vector<Entry> read_toml_entries(const std::string& text, const std::string& where);
std::vector<Entry> read_yaml_entries(const std::string& text, const std::string& where);

/// A shell's words, read as far as argument lists in scripts need it: continued lines, comments,
/// both quotes, NAME=(…) arrays, texts of arguments in variables that grow ("$NAME --flag 1"),
/// $NAME of a name that the script sets once, to a plain word, and the default in ${NAME:-default}.
/// Gives the words of every command, array and text that holds a flag, in the order of the text,
/// with the line of each; so no flag is missing, and one inside an `if` is there too. Of a command
/// that takes arguments it also gives what is spliced in and not known: $NAME and $(command), as
/// written. Throws ConfigError for a quote or bracket that is not closed; `where` names the script.
struct ShellWord {
  std::string text;
  int line = 0;
  bool ends_command = false;  ///< nothing after it belongs to a flag before it
};
std::vector<ShellWord> read_shell_words(const std::string& script, const std::string& where);

/// Whether a word begins with --, as flags do.
bool is_flag(std::string_view word);

}  // namespace tessera::formats
