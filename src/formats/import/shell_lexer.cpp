#include "formats/import/shell_lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/error.h"

namespace tessera::formats {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_operator(char c) {
  return c == ';' || c == '&' || c == '|' || c == '(' || c == ')' || c == '<' || c == '>';
}

/// Behind the bracket that closes the one at `at`; quotes hide brackets inside a command.
size_t bracket_end(std::string_view text, size_t at) {
  const char open = text[at];
  const char close = open == '{' ? '}' : ')';
  int depth = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\\') {
      ++at;
    } else if (open == '(' && (c == '\'' || c == '"')) {
      at = text.find(c, at + 1);
      if (at == std::string_view::npos) return at;
    } else if (c == open) {
      ++depth;
    } else if (c == close && --depth == 0) {
      return at + 1;
    }
  }
  return std::string_view::npos;
}

class Lexer {
 public:
  /// What is read: a script, the text of a variable, or that text with quotes as letters.
  enum class Form : uint8_t { script, arguments, plain };

  Lexer(const std::string& text, Form form, int line)
      : text_(text), form_(form), line_(line), start_(line) {}

  std::vector<ShellToken> run() {
    while (at_ < text_.size()) step();
    end_word();
    return std::move(tokens_);
  }

  /// The line of the first quote or bracket that is not closed; 0 when all are.
  int unclosed() const { return unclosed_; }

 private:
  void step() {
    const char c = text_[at_];
    if (c == '\\') return escape();
    if ((c == '\'' || c == '"') && form_ != Form::plain) return quote(c);
    if (expand()) return;
    if (form_ == Form::script) {
      if (c == '#' && !in_word_) return comment();
      if (is_operator(c)) return separate();
    }
    if (c == '\n') return separate();
    if (is_blank(c)) {
      end_word();
    } else {
      put(c);
    }
    ++at_;
  }

  char peek(size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void escape() {
    const size_t length = peek(1) == '\r' && peek(2) == '\n' ? 3 : 2;
    if (length == 3 || peek(1) == '\n') {
      end_word();
      ++line_;
    } else if (at_ + 1 < text_.size()) {
      put(peek(1));
    }
    at_ += length;
  }

  void quote(char mark) {
    const int opened = line_;
    if (!in_word_) start_ = line_;
    in_word_ = true;
    for (++at_; at_ < text_.size() && text_[at_] != mark;) {
      if (mark == '"' && expand()) continue;
      if (mark == '"' && text_[at_] == '\\' && at_ + 1 < text_.size()) {
        ++at_;
        if (text_[at_] == '\n') {
          put(' ');
          ++line_;
          ++at_;
          continue;
        }
      }
      put(text_[at_]);
      if (text_[at_] == '\n') ++line_;
      ++at_;
    }
    if (at_ >= text_.size()) note_unclosed(opened);
    ++at_;
  }

  /// Takes an expansion whole, if one begins here.
  bool expand() {
    if (unclosed_ != 0) return false;  // once is enough: each look goes to the end of the text
    const size_t end = expansion_end(text_, at_);
    if (end == at_) return false;
    if (end == std::string::npos) {
      note_unclosed(line_);
      return false;
    }
    for (; at_ < end; ++at_) {
      put(text_[at_]);
      if (text_[at_] == '\n') ++line_;
    }
    return true;
  }

  void note_unclosed(int line) {
    if (unclosed_ == 0) unclosed_ = line;
  }

  void comment() {
    while (at_ < text_.size() && text_[at_] != '\n') ++at_;
  }

  void separate() {
    const char c = text_[at_];
    const bool redirects = (is_redirection(c) && peek(1) != '(') || (c == '&' && peek(1) == '>');
    if (redirects && form_ == Form::script) return redirect();
    end_word();
    tokens_.push_back({std::string(1, c), line_, true});
    if (c == '\n') ++line_;
    ++at_;
  }

  static bool is_redirection(char c) { return c == '<' || c == '>'; }

  /// Leaves out 2>&1, >file and <<END; the lines that END closes are read like others, as they may
  /// be a script.
  void redirect() {
    if (std::all_of(word_.begin(), word_.end(), is_digit)) {  // a file descriptor
      word_.clear();
      in_word_ = false;
    }
    end_word();
    while (is_redirection(peek(0)) || peek(0) == '&' || peek(0) == '|') ++at_;
    if (peek(0) == '-') ++at_;
    target_ = true;
  }

  void put(char c) {
    if (!in_word_) start_ = line_;
    in_word_ = true;
    word_ += c;
  }

  void end_word() {
    if (in_word_ && !target_) tokens_.push_back({word_, start_, false});
    if (in_word_) target_ = false;
    word_.clear();
    in_word_ = false;
  }

  const std::string& text_;
  Form form_;
  size_t at_ = 0;
  int line_;
  int start_;
  int unclosed_ = 0;
  bool in_word_ = false;
  bool target_ = false;  ///< the next word is where a redirection leads
  std::string word_;
  std::vector<ShellToken> tokens_;
};

}  // namespace

bool is_shell_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

size_t expansion_end(std::string_view text, size_t at) {
  const char c = text[at];
  if (c == '`') {
    const size_t end = text.find('`', at + 1);
    return end == std::string_view::npos ? end : end + 1;
  }
  if (c != '$' || at + 1 >= text.size()) return at;
  const char next = text[at + 1];
  if (next == '{' || next == '(') return bracket_end(text, at + 1);
  if (is_digit(next) || std::string_view("@*#?!-$").find(next) != std::string_view::npos) {
    return at + 2;
  }
  size_t end = at + 1;
  while (end < text.size() && is_shell_name_char(text[end])) ++end;
  return end == at + 1 ? at : end;
}

std::vector<ShellToken> lex_script(const std::string& script, const std::string& where) {
  Lexer lexer(script, Lexer::Form::script, 1);
  std::vector<ShellToken> tokens = lexer.run();
  if (lexer.unclosed() != 0) {
    throw core::ConfigError(
        fmt::format("{}:{}: opens a quote or a bracket that nothing closes: where an argument ends "
                    "cannot be told",
                    where, lexer.unclosed()));
  }
  return tokens;
}

std::vector<ShellToken> lex_arguments(const std::string& text, int line) {
  Lexer lexer(text, Lexer::Form::arguments, line);
  std::vector<ShellToken> tokens = lexer.run();
  if (lexer.unclosed() != 0) tokens = Lexer(text, Lexer::Form::plain, line).run();
  const auto is_separator = [](const ShellToken& token) { return token.separator; };
  tokens.erase(std::remove_if(tokens.begin(), tokens.end(), is_separator), tokens.end());
  return tokens;
}

}  // namespace tessera::formats
