#include "data/normalizer.h"

// Most text is in normal form. Only stretches with a character that could change go through
// utf8proc, each with the character before it, which it may combine with; a stretch ends before the
// next character that nothing combines with. So memory is that of a stretch.

#include <fmt/format.h>
#include <utf8proc.h>

#include <cstdlib>

#include "core/error.h"
#include "data/utf8.h"

namespace tessera::data {
namespace {

utf8proc_option_t options_of(Normalization form) {
  int options = UTF8PROC_STABLE;
  const bool composed = form == Normalization::nfc || form == Normalization::nfkc;
  options |= composed ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == Normalization::nfkc || form == Normalization::nfkd) options |= UTF8PROC_COMPAT;
  return static_cast<utf8proc_option_t>(options);
}

/// Characters below are in every text as they are, and combine with no character before them.
uint32_t first_that_may_change(Normalization form) {
  return form == Normalization::nfc ? 0x300 : 0x80;
}

void append_normalized(std::string_view stretch, Normalization form, std::string& out) {
  utf8proc_uint8_t* result = nullptr;
  const utf8proc_ssize_t bytes =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(stretch.data()),
                   static_cast<utf8proc_ssize_t>(stretch.size()), &result, options_of(form));
  if (bytes < 0) {
    throw core::RunError(fmt::format("A text of {} bytes cannot be normalised: {}.", stretch.size(),
                                     utf8proc_errmsg(bytes)));
  }
  out.append(reinterpret_cast<const char*>(result), static_cast<size_t>(bytes));
  std::free(result);
}

}  // namespace

std::string_view normalized(std::string_view text, Normalization form, std::string& buffer) {
  if (form == Normalization::none) return text;
  const uint32_t limit = first_that_may_change(form);
  bool changed = false;
  size_t copied = 0;  // of text, into buffer
  size_t before = 0;  // the last character
  for (size_t at = 0; at < text.size();) {
    const size_t bytes = utf8_character_bytes(text.substr(at));
    CHECK(bytes > 0, "not well-formed");
    if (utf8_code_point(text.substr(at), bytes) < limit) {
      before = at;
      at += bytes;
      continue;
    }
    const size_t start = before < at ? before : at;
    size_t end = at + bytes;
    while (end < text.size()) {
      const size_t more = utf8_character_bytes(text.substr(end));
      if (utf8_code_point(text.substr(end), more) < limit) break;
      end += more;
    }
    if (!changed) buffer.clear();
    changed = true;
    buffer.append(text, copied, start - copied);
    append_normalized(text.substr(start, end - start), form, buffer);
    copied = before = at = end;
  }
  if (!changed) return text;
  buffer.append(text, copied, text.size() - copied);
  return buffer;
}

}  // namespace tessera::data
