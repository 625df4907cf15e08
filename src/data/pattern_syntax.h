#pragma once

#include <string>
#include <string_view>

namespace tessera::data {

/// A pattern in Oniguruma's syntax (Ruby's, which tokenizer.json has) in PCRE2's, with the same
/// matches: what the two read differently is spelled out, such as \s, which is Unicode's
/// White_Space, or \h, a hexadecimal digit. Throws ConfigError that names a construct that has no
/// counterpart, or whose meaning differs in ways that are not covered.
std::string to_pcre2(std::string_view pattern);

/// A pattern as it is shown in a message: its start, where it is long.
std::string shown_pattern(std::string_view pattern);

/// A pattern that matches `text` and nothing else.
std::string literal_pattern(std::string_view text);

}  // namespace tessera::data
