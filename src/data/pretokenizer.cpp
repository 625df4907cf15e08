#include "data/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <string>

#include "core/error.h"
#include "data/utf8.h"

namespace tessera::data {
namespace {

// White space is Unicode's White_Space, spelled out: PCRE2's own \s takes U+180E for a space.
#define WHITE_SPACE                                                                             \
  "\\x{09}-\\x{0D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}" \
  "\\x{205F}\\x{3000}"

constexpr char kPattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d"
    "| ?\\p{L}+"
    "| ?\\p{N}+"
    "| ?[^" WHITE_SPACE
    "\\p{L}\\p{N}]+"
    "|[" WHITE_SPACE "]+(?![^" WHITE_SPACE
    "])"
    "|[" WHITE_SPACE "]+";

#undef WHITE_SPACE

std::string message_of(int error) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

}  // namespace

Pretokenizer::Pretokenizer() {
  int error = 0;
  PCRE2_SIZE offset = 0;
  // Anchored: every character starts some alternative, so the next match is always right here.
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(kPattern), sizeof kPattern - 1,
                    PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &error, &offset, nullptr);
  CHECK(code != nullptr, message_of(error));
  // Where the system forbids code made at run time, pcre2_match interprets: slower, the same words.
  jit_ = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
  code_ = code;
}

Pretokenizer::~Pretokenizer() {
  pcre2_code_free(static_cast<pcre2_code*>(code_));
}

PieceReader::PieceReader(const Pretokenizer& pretokenizer)
    : pretokenizer_(pretokenizer), match_data_(pcre2_match_data_create(1, nullptr)) {
  CHECK(match_data_ != nullptr);
}

PieceReader::~PieceReader() {
  pcre2_match_data_free(static_cast<pcre2_match_data*>(match_data_));
}

void PieceReader::start(std::string_view text) {
  rest_ = text;
  valid_ = 0;
}

bool PieceReader::next(std::string_view& piece) {
  if (rest_.empty()) return false;
  if (valid_ == 0) valid_ = utf8_valid_prefix(rest_);
  size_t length = 1;
  if (valid_ == 0) {
    ++invalid_bytes_;
  } else {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(rest_.data());
    const auto* code = static_cast<const pcre2_code*>(pretokenizer_.code_);
    auto* match = static_cast<pcre2_match_data*>(match_data_);
    const int found =
        pretokenizer_.jit_
            ? pcre2_jit_match(code, subject, valid_, 0, 0, match, nullptr)
            : pcre2_match(code, subject, valid_, 0, PCRE2_NO_UTF_CHECK, match, nullptr);
    CHECK(found > 0, message_of(found));
    length = pcre2_get_ovector_pointer(match)[1];
    valid_ -= length;
  }
  piece = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return true;
}

}  // namespace tessera::data
