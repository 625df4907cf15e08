#pragma once

// What a letter is depends on the version of Unicode, and each libpcre2 has its own: 10.42 that of
// version 14. Ids must not depend on it, and Hugging Face's `tokenizers` has version 16. So
// patterns are matched against texts in which every character that versions may disagree on has
// been replaced by one of as many bytes that all of them take for what version 16 says.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tessera::data {

/// Characters of one stand-in. It has their general category in Unicode 16, and is a noncharacter
/// for those that are unassigned there.
struct RecentCharacters {
  uint32_t first;
  uint32_t last;
  uint32_t stand_in;
};

/// In the order of their code points; all have three bytes or four in UTF-8.
std::span<const RecentCharacters> recent_characters();

/// `text`, well-formed UTF-8, itself where nothing in it is recent; otherwise `buffer`, set to the
/// text with stand-ins at the same offsets.
std::string_view with_stand_ins(std::string_view text, std::string& buffer);

/// True when a pattern names characters, assigned in Unicode 16, that stand-ins would hide from it:
/// as they are, as \uNNNN or as \x{N}.
bool names_recent_characters(std::string_view pattern);

}  // namespace tessera::data
