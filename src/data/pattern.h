#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace tessera::data {

/// Where a pattern matches, in bytes.
struct MatchRange {
  size_t begin;
  size_t end;
};

/// A regular expression, compiled. Immutable; shared by any number of matchers and threads.
class Pattern {
 public:
  /// `pattern` is as in tokenizer.json (pattern_syntax.h). Throws ConfigError where it is none.
  explicit Pattern(const std::string& pattern);
  ~Pattern();
  Pattern(Pattern&& other) noexcept;
  Pattern& operator=(Pattern&&) = delete;

  /// As it was given.
  const std::string& text() const { return text_; }
  /// What of `text` to match: with stand-ins for recent characters (recent_characters.h), in
  /// `buffer`, unless the pattern names some of them.
  std::string_view matchable(std::string_view text, std::string& buffer) const;

 private:
  friend class Matcher;
  std::string text_;
  void* code_ = nullptr;  // pcre2_code
  bool jit_ = false;
  bool takes_stand_ins_ = true;
};

/// What matching needs of its own, for any pattern. One thread.
class Matcher {
 public:
  Matcher();
  ~Matcher();
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  /// The leftmost match in well-formed UTF-8 (see Pattern::matchable) from `start` on, a boundary
  /// of characters. Throws
  /// RunError where the search takes too long or too much memory: the pattern backtracks without
  /// end.
  std::optional<MatchRange> find(const Pattern& pattern, std::string_view text, size_t start);

 private:
  void* match_data_;  // pcre2_match_data
  void* context_;     // pcre2_match_context
  void* stack_;       // pcre2_jit_stack
};

}  // namespace tessera::data
