#pragma once

// A shell script as words and separators, the first step of reading the argument lists in it.

#include <string>
#include <string_view>
#include <vector>

namespace tessera::formats {

/// One word of the script: quotes are gone, what they held is not split. ${…}, $(…) and `…` stay as
/// they are written, blanks and all.
struct ShellToken {
  std::string text;
  int line = 0;
  bool separator = false;  ///< a newline or operator, or a bracket; redirections leave no token
};

/// Cuts a script into words. Throws ConfigError that names the line for a quote or bracket that is
/// not closed.
std::vector<ShellToken> lex_script(const std::string& script, const std::string& where);

/// Cuts a text that a variable holds, or that is quoted, into words: no operators and no comments.
/// Quotes in it that are not closed are letters.
std::vector<ShellToken> lex_arguments(const std::string& text, int line);

/// Where the expansion at `text[at]` ends: $NAME, $1, $@, ${…}, $(…) or `…`. Gives `at` for none,
/// npos for one that is not closed.
size_t expansion_end(std::string_view text, size_t at);

/// Letters, digits and _, as in the names of variables.
bool is_shell_name_char(char c);

}  // namespace tessera::formats
