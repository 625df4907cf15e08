#include "data/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <utility>

#include "core/error.h"
#include "data/pattern_syntax.h"
#include "data/recent_characters.h"

namespace tessera::data {
namespace {

std::string message_of(int error) {
  PCRE2_UCHAR text[256];
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

PCRE2_SPTR units(std::string_view text) {
  // PCRE2 refuses a null pointer even for no text.
  return reinterpret_cast<PCRE2_SPTR>(text.empty() ? "" : text.data());
}

}  // namespace

Pattern::Pattern(const std::string& pattern) : text_(pattern) {
  const std::string translated = to_pcre2(pattern);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  CHECK(context != nullptr);
  // As in Ruby: ^ and $ are line's, and a line ends with \n alone.
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  pcre2_code* code = pcre2_compile(units(translated), translated.size(),
                                   PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_AUTO_CAPTURE,
                                   &error, &offset, context);
  pcre2_compile_context_free(context);
  if (code == nullptr) {
    throw core::ConfigError(fmt::format("The pattern \"{}\" is not understood: {}.",
                                        shown_pattern(pattern), message_of(error)));
  }
  // Where the system forbids code made at run time, pcre2_match interprets: slower, the same words.
  jit_ = pcre2_jit_compile(code, PCRE2_JIT_COMPLETE) == 0;
  code_ = code;
  takes_stand_ins_ = !names_recent_characters(pattern);
}

Pattern::Pattern(Pattern&& other) noexcept
    : text_(std::move(other.text_)),
      code_(std::exchange(other.code_, nullptr)),
      jit_(other.jit_),
      takes_stand_ins_(other.takes_stand_ins_) {}

Pattern::~Pattern() {
  pcre2_code_free(static_cast<pcre2_code*>(code_));
}

std::string_view Pattern::matchable(std::string_view text, std::string& buffer) const {
  return takes_stand_ins_ ? with_stand_ins(text, buffer) : text;
}

Matcher::Matcher()
    : match_data_(pcre2_match_data_create(1, nullptr)),
      context_(pcre2_match_context_create(nullptr)) {
  constexpr size_t kFirst = size_t{64} << 10;
  constexpr size_t kMost = size_t{64} << 20;
  constexpr uint32_t kSteps = 1u << 26;
  constexpr uint32_t kHeapKilobytes = 1u << 20;
  stack_ = pcre2_jit_stack_create(kFirst, kMost, nullptr);
  CHECK(match_data_ != nullptr && context_ != nullptr);
  auto* context = static_cast<pcre2_match_context*>(context_);
  pcre2_set_match_limit(context, kSteps);
  pcre2_set_depth_limit(context, kSteps);
  pcre2_set_heap_limit(context, kHeapKilobytes);
  if (stack_ != nullptr) pcre2_jit_stack_assign(context, nullptr, stack_);
}

Matcher::~Matcher() {
  pcre2_jit_stack_free(static_cast<pcre2_jit_stack*>(stack_));
  pcre2_match_context_free(static_cast<pcre2_match_context*>(context_));
  pcre2_match_data_free(static_cast<pcre2_match_data*>(match_data_));
}

std::optional<MatchRange> Matcher::find(const Pattern& pattern, std::string_view text,
                                        size_t start) {
  const auto* code = static_cast<const pcre2_code*>(pattern.code_);
  auto* match = static_cast<pcre2_match_data*>(match_data_);
  auto* context = static_cast<pcre2_match_context*>(context_);
  int found = PCRE2_ERROR_JIT_STACKLIMIT;
  if (pattern.jit_) {
    found = pcre2_jit_match(code, units(text), text.size(), start, 0, match, context);
  }
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
    found = pcre2_match(code, units(text), text.size(), start, PCRE2_NO_UTF_CHECK, match, context);
  }
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (found < 0) {
    throw core::RunError(
        fmt::format("The pattern \"{}\" cannot be matched from byte {} of a text of {} bytes: {}. "
                    "It backtracks too much; use another tokenizer, or cut the text.",
                    shown_pattern(pattern.text_), start, text.size(), message_of(found)));
  }
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(match);
  return MatchRange{ends[0], ends[1]};
}

}  // namespace tessera::data
