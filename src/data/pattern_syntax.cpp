#include "data/pattern_syntax.h"

#include <fmt/format.h>

#include <cctype>
#include <vector>

#include "core/error.h"
#include "data/utf8.h"

namespace tessera::data {
namespace {

// Members of a bracketed class. PCRE2's own \s takes U+180E for a space, and its \w lacks marks.
constexpr std::string_view kSpaces =
    R"(\x{09}-\x{0D}\x{20}\x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
constexpr std::string_view kNoSpaces =
    R"(\x{00}-\x{08}\x{0E}-\x{1F}\x{21}-\x{84}\x{86}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027}\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{D7FF}\x{E000}-\x{10FFFF})";
constexpr std::string_view kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
// \w is more outside brackets, and \b goes by that: superscripts and fractions of Latin-1.
constexpr std::string_view kLoneWord =
    R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})";
constexpr std::string_view kHexDigits = "0-9A-Fa-f";

/// Characters that Unicode's full case folding makes several, by the blocks they are in.
bool folds_to_several(uint32_t c) {
  return c == 0xDF || c == 0x130 || c == 0x149 || c == 0x1F0 || c == 0x390 || c == 0x3B0 ||
         c == 0x587 || (c >= 0x1E96 && c <= 0x1E9E) || (c >= 0x1F50 && c <= 0x1FFC) ||
         (c >= 0xFB00 && c <= 0xFB17);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

class Translator {
 public:
  explicit Translator(std::string_view pattern) : pattern_(pattern) {}

  std::string translate() {
    while (at_ < pattern_.size()) {
      switch (pattern_[at_]) {
        case '\\':
          escape();
          break;
        case '[':
          bracket();
          break;
        case '(':
          group();
          break;
        case ')':
          if (!outer_folds_.empty()) {
            folds_ = outer_folds_.back();
            outer_folds_.pop_back();
          }
          copy(1);
          break;
        case '{':
          counted();
          break;
        default:
          if (folds_) refuse_long_folds();
          copy(1);
      }
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what, const char* why) const {
    throw core::ConfigError(fmt::format("The pattern \"{}\" has {} at byte {}: {}",
                                        shown_pattern(pattern_), shown_pattern(what), at_, why));
  }
  [[noreturn]] void refuse_syntax(std::string_view what) const {
    refuse(what, "it is not supported in patterns.");
  }
  char peek(size_t ahead = 0) const {
    return at_ + ahead < pattern_.size() ? pattern_[at_ + ahead] : '\0';
  }
  void copy(size_t bytes) {
    out_ += pattern_.substr(at_, bytes);
    at_ += bytes;
  }
  void replace(size_t bytes, std::string_view by) {
    at_ += bytes;
    out_ += by;
  }

  /// Under (?i), Oniguruma takes ß for ss and ﬁ for fi, either way.
  void refuse_long_folds() const {
    const std::string_view rest = pattern_.substr(at_);
    const size_t bytes = utf8_character_bytes(rest);
    const bool folds = bytes > 1 && folds_to_several(utf8_code_point(rest, bytes));
    const auto lower = [](char c) { return 'A' <= c && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    const std::string pair{lower(peek()), lower(peek(1))};
    const bool folded =
        pair == "ss" || pair == "st" || pair == "ff" || pair == "fi" || pair == "fl";
    if (folds || folded) {
      refuse(fmt::format("{} under (?i)", rest.substr(0, folds ? bytes : 2)),
             "one character and several are the same there, which is not supported in patterns.");
    }
  }
  void refuse_folds_in_class() const {
    const std::string_view rest = pattern_.substr(at_);
    const size_t bytes = utf8_character_bytes(rest);
    if (bytes < 2) return;
    if (peek(bytes) == '-' || folds_to_several(utf8_code_point(rest, bytes))) {
      refuse(
          fmt::format("{} in a class under (?i)", rest.substr(0, bytes)),
          "one character and several may be the same there, which is not supported in patterns.");
    }
  }

  /// A class of its own, outside brackets.
  void replace_class(std::string_view members, bool negated) {
    replace(2, negated ? "[^" : "[");
    out_ += members;
    out_ += ']';
  }

  void escape() {
    switch (peek(1)) {
      case 's':
        return replace_class(kSpaces, false);
      case 'S':
        return replace_class(kSpaces, true);
      case 'w':
        return replace_class(kLoneWord, false);
      case 'W':
        return replace_class(kLoneWord, true);
      case 'h':
        return replace_class(kHexDigits, false);
      case 'H':
        return replace_class(kHexDigits, true);
      case 'b':
        return word_boundary(true);
      case 'B':
        return word_boundary(false);
      case 'A':
      case 'z':
      case 'Z':
        return copy(2);
      default:
        return shared_escape();
    }
  }

  void word_boundary(bool is) {
    const std::string word = fmt::format("[{}]", kLoneWord);
    replace(2, is ? fmt::format("(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", word)
                  : fmt::format("(?:(?<={0})(?={0})|(?<!{0})(?!{0}))", word));
  }

  /// Escapes that mean the same inside and outside brackets.
  void shared_escape() {
    const char kind = peek(1);
    const std::string shown = fmt::format("\\{}", kind);
    switch (kind) {
      case '\0':
        refuse_syntax("a backslash with nothing behind it");
      case 'd':
        return replace(2, R"(\p{Nd})");
      case 'D':
        return replace(2, R"(\P{Nd})");
      case 'v':
        return replace(2, R"(\x{0B})");
      case 'p':
      case 'P':
        return property();
      case 'u':
        return code_point();
      case 'n':
      case 'r':
      case 't':
      case 'f':
      case 'a':
      case 'e':
        return copy(2);
      case 'x':
        return hexadecimal();
      default:
        break;
    }
    if (std::isalnum(static_cast<unsigned char>(kind)) != 0) refuse_syntax(shown);
    copy(2);
  }

  /// \p{Name}. Names of scripts are those of the property Script, not of Script_Extensions.
  void property() {
    const size_t close = pattern_.find('}', at_);
    if (peek(2) != '{' || close == std::string_view::npos) refuse_syntax(pattern_.substr(at_, 2));
    std::string_view name = pattern_.substr(at_ + 3, close - at_ - 3);
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    if (name.empty() ||
        name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                               "0123456789_") != std::string_view::npos) {
      refuse_syntax(pattern_.substr(at_, close + 1 - at_));
    }
    for (const char* cased : {"Lu", "Ll", "Lt", "Uppercase", "Lowercase"}) {
      if (folds_ && name == cased)
        refuse(fmt::format("\\p{{{}}} under (?i)", name),
               "it has another case's letters there in brackets only, which is not supported in "
               "patterns.");
    }
    constexpr size_t kCategory = 2;  // "L", "Lu": a general category
    constexpr std::string_view kOthers[] = {"Any",       "Alphabetic", "White_Space",
                                            "Uppercase", "Lowercase",  "Emoji"};
    bool script = name.size() > kCategory;
    for (const std::string_view other : kOthers) script = script && name != other;
    out_ += fmt::format("\\{}{{{}{}{}}}", peek(1), negated ? "^" : "", script ? "sc:" : "", name);
    at_ = close + 1;
  }

  void code_point() {
    constexpr size_t kDigits = 4;
    if (at_ + 2 + kDigits > pattern_.size()) refuse_syntax("\\u");
    const std::string_view digits = pattern_.substr(at_ + 2, kDigits);
    if (digits.find_first_not_of("0123456789ABCDEFabcdef") != std::string_view::npos) {
      refuse_syntax("\\u");
    }
    out_ += fmt::format("\\x{{{}}}", digits);
    at_ += 2 + kDigits;
  }

  void hexadecimal() {
    if (peek(2) == '{') {
      const size_t close = pattern_.find('}', at_);
      if (close == std::string_view::npos) refuse_syntax("\\x{");
      return copy(close + 1 - at_);
    }
    // \xNN is a byte in Oniguruma: a character only in ASCII.
    if (peek(2) < '0' || peek(2) > '7') refuse_syntax("\\x");
    copy(4);
  }

  void bracket() {
    copy(1);
    if (peek() == '^') copy(1);
    if (peek() == ']') copy(1);  // a member when it comes first
    while (peek() != ']') {
      if (at_ >= pattern_.size()) refuse_syntax("a [ without ]");
      if (peek() == '[') refuse_syntax("a class in a class");
      if (peek() == '&' && peek(1) == '&') refuse_syntax("&&");
      if (peek() == '\\') {
        bracket_escape();
      } else {
        if (folds_) refuse_folds_in_class();
        copy(1);
      }
    }
    copy(1);
  }

  void bracket_escape() {
    switch (peek(1)) {
      case 's':
        return replace(2, kSpaces);
      case 'S':
        return replace(2, kNoSpaces);
      case 'w':
        return replace(2, kWord);
      case 'h':
        return replace(2, kHexDigits);
      case 'b':
        return replace(2, R"(\x{08})");
      default:
        return shared_escape();
    }
  }

  void group() {
    if (peek(1) == '*') refuse_syntax("(*");
    outer_folds_.push_back(folds_);
    if (peek(1) != '?') return copy(1);
    const char kind = peek(2);
    const bool look_behind = kind == '<' && (peek(3) == '=' || peek(3) == '!');
    if (kind == ':' || kind == '=' || kind == '!' || kind == '>') return copy(3);
    if (look_behind) return copy(4);
    // (?i) and (?i: alone: the other letters mean other things.
    size_t length = 2;
    if (peek(length) == '-') ++length;
    if (peek(length) != 'i' || (peek(length + 1) != ':' && peek(length + 1) != ')')) {
      refuse_syntax(pattern_.substr(at_, 3));
    }
    folds_ = length == 2;
    if (peek(length + 1) == ')') outer_folds_.pop_back();  // holds for the rest of the group
    copy(length + 2);
  }

  /// {n}, {n,}, {n,m}, {,m}, and a brace that stands for itself.
  void counted() {
    size_t at = at_ + 1;
    const auto number = [&] {
      const size_t start = at;
      while (at < pattern_.size() && is_digit(pattern_[at])) ++at;
      return pattern_.substr(start, at - start);
    };
    const std::string_view least = number();
    const bool comma = at < pattern_.size() && pattern_[at] == ',';
    if (comma) ++at;
    const std::string_view most = comma ? number() : std::string_view();
    const bool is_count =
        at < pattern_.size() && pattern_[at] == '}' && !(least.empty() && most.empty());
    if (!is_count) return replace(1, "\\{");
    const char after = at + 1 < pattern_.size() ? pattern_[at + 1] : '\0';
    if (after == '+') refuse("}+", "it repeats the repetition there, and does not in PCRE2.");
    if (after == '?' && !comma) refuse("}?", "it makes the repetition optional there.");
    if (least.empty()) {
      out_ += fmt::format("{{0,{}}}", most);
      at_ = at + 1;
    } else {
      copy(at + 1 - at_);
    }
  }

  std::string_view pattern_;
  size_t at_ = 0;
  std::string out_;
  bool folds_ = false;             // under (?i)
  std::vector<bool> outer_folds_;  // the same, outside each group that is open
};

}  // namespace

std::string to_pcre2(std::string_view pattern) {
  return Translator(pattern).translate();
}

std::string shown_pattern(std::string_view pattern) {
  constexpr size_t kLong = 160;
  if (pattern.size() <= kLong) return std::string(pattern);
  return std::string(pattern.substr(0, utf8_valid_prefix(pattern.substr(0, kLong)))) + "…";
}

std::string literal_pattern(std::string_view text) {
  std::string pattern;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80 && std::isalnum(byte) == 0 && byte >= 0x20) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace tessera::data
