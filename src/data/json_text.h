#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tessera::data {

/// What a line of JSON Lines holds.
struct JsonText {
  std::optional<std::string> text;  ///< the field's value; nothing when the line is at fault
  std::string fault;                ///< then: what is wrong, "a comma is missing"
  size_t column = 0;                ///< and where, in bytes from 1
};

/// The string under `field` in `line`, which holds one JSON object. The whole line is checked to be
/// JSON. Bytes that are no UTF-8 stay as they are; a lone surrogate escape becomes U+FFFD, an
/// escaped pair the character it stands for. Of a repeated field the last one counts.
JsonText json_text(std::string_view line, std::string_view field);

}  // namespace tessera::data
