#include "data/json_text.h"

// A JSON reader of its own, because the usual ones refuse exactly what web text has: bytes that are
// no UTF-8, and halves of surrogate pairs. It needs one string of a line, so it builds nothing
// else; it walks nested values with a stack on the heap, so depth is no danger.

#include <vector>

#include "data/utf8.h"

namespace tessera::data {
namespace {

constexpr uint32_t kReplacement = 0xFFFD;

/// What is wrong, and where.
struct Fault {
  const char* what;
  size_t at;
};

class Scanner {
 public:
  explicit Scanner(std::string_view line) : line_(line) {}

  std::optional<std::string> field(std::string_view name) {
    std::optional<std::string> value;
    skip_space();
    expect('{', "an object, {…}, is expected");
    skip_space();
    if (!take('}')) {
      do {
        skip_space();
        const size_t key_at = at_;
        const std::string key = string();
        skip_space();
        expect(':', "a colon is missing after a key");
        skip_space();
        if (key != name) {
          skip_value();
        } else if (peek() == '"') {
          value = string();
        } else {
          throw Fault{"the field is not a string", key_at};
        }
        skip_space();
      } while (take(','));
      expect('}', "a comma or the closing brace is missing");
    }
    skip_space();
    if (at_ < line_.size()) throw Fault{"there is something after the object", at_};
    return value;
  }

  size_t at() const { return at_; }

 private:
  /// The next byte; 0 at the end.
  char peek() const { return at_ < line_.size() ? line_[at_] : '\0'; }
  bool take(char byte) {
    if (at_ >= line_.size() || line_[at_] != byte) return false;
    ++at_;
    return true;
  }
  void expect(char byte, const char* otherwise) {
    if (!take(byte)) throw Fault{otherwise, at_};
  }
  void skip_space() {
    while (at_ < line_.size() &&
           (peek() == ' ' || peek() == '\t' || peek() == '\r' || peek() == '\n')) {
      ++at_;
    }
  }

  /// Steps over any value.
  void skip_value() {
    std::vector<char> closers;  // of the arrays and objects that are open here
    do {
      skip_space();
      if (take('[')) {
        skip_space();
        if (!take(']')) {
          closers.push_back(']');
          continue;
        }
      } else if (take('{')) {
        skip_space();
        if (!take('}')) {
          closers.push_back('}');
          skip_key();
          continue;
        }
      } else {
        skip_scalar();
      }
      // A value ended: so may what it is in.
      for (skip_space(); !closers.empty() && take(closers.back()); skip_space()) closers.pop_back();
      if (closers.empty()) return;
      expect(',', "a comma or a closing bracket is missing");
      if (closers.back() == '}') skip_key();
    } while (true);
  }
  void skip_key() {
    skip_space();
    skip_string();
    skip_space();
    expect(':', "a colon is missing after a key");
  }
  void skip_scalar() {
    if (peek() == '"') return skip_string();
    for (const std::string_view word : {"true", "false", "null"}) {
      if (line_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return;
      }
    }
    skip_number();
  }
  void skip_number() {
    take('-');
    if (!take('0')) skip_digits();
    if (take('.')) skip_digits();
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      skip_digits();
    }
  }
  void skip_digits() {
    if (peek() < '0' || peek() > '9') throw Fault{"a value is expected", at_};
    while (peek() >= '0' && peek() <= '9') ++at_;
  }
  void skip_string() { string(); }

  std::string string() {
    const size_t start = at_;
    expect('"', "a string is expected");
    std::string value;
    for (;;) {
      const size_t plain = at_;
      while (at_ < line_.size() && line_[at_] != '"' && line_[at_] != '\\' &&
             static_cast<unsigned char>(line_[at_]) >= 0x20) {
        ++at_;
      }
      value.append(line_, plain, at_ - plain);
      if (take('"')) return value;
      if (at_ >= line_.size()) throw Fault{"a string does not end", start};
      if (!take('\\'))
        throw Fault{"a control character stands in a string; it must be escaped", at_};
      escape(value);
    }
  }

  /// What follows a backslash.
  void escape(std::string& value) {
    const char kind = peek();
    ++at_;
    switch (kind) {
      case '"':
      case '\\':
      case '/':
        value.push_back(kind);
        return;
      case 'b':
        value.push_back('\b');
        return;
      case 'f':
        value.push_back('\f');
        return;
      case 'n':
        value.push_back('\n');
        return;
      case 'r':
        value.push_back('\r');
        return;
      case 't':
        value.push_back('\t');
        return;
      case 'u':
        append_utf8(value, code_point());
        return;
      default:
        throw Fault{"a backslash is followed by what is no escape", at_ - 1};
    }
  }

  uint32_t code_point() {
    const uint32_t first = four_digits();
    if (first < 0xD800 || first > 0xDFFF) return first;
    const size_t after = at_;
    if (first < 0xDC00 && take('\\') && take('u')) {
      const uint32_t second = four_digits();
      if (second >= 0xDC00 && second <= 0xDFFF) {
        return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
      }
    }
    at_ = after;  // half a pair; what follows stands for itself
    return kReplacement;
  }

  uint32_t four_digits() {
    uint32_t value = 0;
    for (int digit = 0; digit < 4; ++digit) {
      const char c = peek();
      const uint32_t nibble = c >= '0' && c <= '9'   ? static_cast<uint32_t>(c - '0')
                              : c >= 'a' && c <= 'f' ? static_cast<uint32_t>(c - 'a' + 10)
                              : c >= 'A' && c <= 'F' ? static_cast<uint32_t>(c - 'A' + 10)
                                                     : 16;
      if (nibble == 16) throw Fault{"\\u takes four hexadecimal digits", at_};
      value = value << 4 | nibble;
      ++at_;
    }
    return value;
  }

  std::string_view line_;
  size_t at_ = 0;
};

}  // namespace

JsonText json_text(std::string_view line, std::string_view field) {
  JsonText result;
  try {
    result.text = Scanner(line).field(field);
    if (!result.text) result.fault = "the field is missing";
  } catch (const Fault& fault) {
    result.fault = fault.what;
    result.column = fault.at + 1;
  }
  return result;
}

}  // namespace tessera::data
