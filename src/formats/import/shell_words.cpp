// Just enough of a shell's grammar for the scripts that start Megatron: argument lists live in
// NAME=(…) arrays, in quoted texts, and behind the program's name, over continued lines.

#include <algorithm>
#include <cctype>
#include <map>

#include "formats/import/entry.h"

namespace tessera::formats {
namespace {

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

bool is_name_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// One word of the script as read: quotes are gone, what they held is not split.
struct Token {
  std::string text;
  int line = 0;
  bool separator = false;  ///< a newline or operator, or a bracket round an array
};

/// Cuts the script into words and separators.
class Lexer {
 public:
  explicit Lexer(const std::string& script) : script_(script) {}

  std::vector<Token> run() {
    while (at_ < script_.size()) step();
    end_word();
    return std::move(tokens_);
  }

 private:
  void step() {
    const char c = script_[at_];
    if (c == '\\') return escape();
    if (c == '\'') return quote('\'');
    if (c == '"') return quote('"');
    if (c == '$' && at_ + 1 < script_.size() && (peek(1) == '{' || peek(1) == '(')) return expand();
    if (c == '#' && !in_word_) return comment();
    if (c == '\n' || is_operator(c)) return separate();
    if (is_blank(c)) {
      end_word();
    } else {
      put(c);
    }
    ++at_;
  }

  char peek(size_t ahead) const {
    return at_ + ahead < script_.size() ? script_[at_ + ahead] : '\0';
  }
  static bool is_operator(char c) {
    return c == ';' || c == '&' || c == '|' || c == '(' || c == ')' || c == '<' || c == '>';
  }

  void escape() {
    if (peek(1) == '\n') {
      end_word();
      ++line_;
    } else if (at_ + 1 < script_.size()) {
      put(peek(1));
    }
    at_ += 2;
  }

  void quote(char mark) {
    in_word_ = true;
    for (++at_; at_ < script_.size() && script_[at_] != mark; ++at_) {
      if (script_[at_] == '\n') ++line_;
      if (mark == '"' && script_[at_] == '\\' && at_ + 1 < script_.size()) {
        ++at_;
        if (script_[at_] == '\n') continue;
      }
      put(script_[at_]);
    }
    ++at_;
  }

  /// ${NAME[@]} and $(command) stay one word, brackets and all.
  void expand() {
    const char open = peek(1);
    const char close = open == '{' ? '}' : ')';
    int depth = 0;
    for (; at_ < script_.size(); ++at_) {
      const char c = script_[at_];
      if (c == '\n') ++line_;
      put(c);
      if (c == open) ++depth;
      if (c == close && --depth == 0) break;
    }
    ++at_;
  }

  void comment() {
    while (at_ < script_.size() && script_[at_] != '\n') ++at_;
  }

  void separate() {
    const char c = script_[at_++];
    const bool number = std::all_of(word_.begin(), word_.end(),
                                    [](unsigned char digit) { return std::isdigit(digit) != 0; });
    if ((c == '<' || c == '>') && number) in_word_ = false;  // of a file descriptor, as in 2>&1
    end_word();
    tokens_.push_back({std::string(1, c), line_, true});
    if (c == '\n') ++line_;
  }

  void put(char c) {
    if (!in_word_) start_ = line_;
    in_word_ = true;
    word_ += c;
  }

  void end_word() {
    if (in_word_) tokens_.push_back({word_, start_, false});
    word_.clear();
    in_word_ = false;
  }

  const std::string& script_;
  size_t at_ = 0;
  int line_ = 1;
  int start_ = 1;
  bool in_word_ = false;
  std::string word_;
  std::vector<Token> tokens_;
};

/// The name that `word` assigns to, or nothing; NAME=… and NAME+=….
std::string assigned_name(const std::string& word) {
  size_t end = 0;
  while (end < word.size() && is_name_char(word[end])) ++end;
  const std::string name = word.substr(0, end);
  if (end < word.size() && word[end] == '+') ++end;
  const bool assigns = end < word.size() && word[end] == '=' && !name.empty() &&
                       std::isdigit(static_cast<unsigned char>(name[0])) == 0;
  return assigns ? name : std::string();
}

std::string assigned_value(const std::string& word) {
  return word.substr(word.find('=') + 1);
}

/// The name in $NAME, ${NAME}, ${NAME[@]} and ${NAME[*]}; empty for anything else.
std::string expanded_name(const std::string& word) {
  if (word.size() < 2 || word[0] != '$') return {};
  std::string name = word.substr(1);
  if (name.size() > 2 && name.front() == '{' && name.back() == '}') {
    name = name.substr(1, name.size() - 2);
    for (const char* all : {"[@]", "[*]"}) {
      if (name.size() > 3 && name.ends_with(all)) {
        name.resize(name.size() - 3);
      }
    }
  }
  return std::all_of(name.begin(), name.end(), is_name_char) ? name : std::string();
}

class Script {
 public:
  explicit Script(const std::string& text) : tokens_(Lexer(text).run()) {
    for (size_t i = 0; i < tokens_.size(); ++i) learn(i);
  }

  std::vector<ShellWord> words() {
    std::vector<Token> command;
    for (const Token& token : tokens_) {
      if (!token.separator) {
        command.push_back(token);
      } else if (!inside_array(token)) {
        end_command(command);
      }
    }
    end_command(command);
    return std::move(words_);
  }

 private:
  /// Notes what token `i` assigns: a plain word, a text of arguments or, before "(", an array.
  void learn(size_t i) {
    const std::string name = tokens_[i].separator ? "" : assigned_name(tokens_[i].text);
    if (name.empty()) return;
    const std::string value = assigned_value(tokens_[i].text);
    const bool array = value.empty() && i + 1 < tokens_.size() && tokens_[i + 1].text == "(";
    const bool arguments = !split(value, 1).empty() && is_flag(split(value, 1).front().text);
    if (array || arguments) lists_[name] = true;
    const bool plain = !array && !value.empty() && value.find_first_of("$ \t\n`") == value.npos;
    const auto known = plain_.find(name);
    // Set twice, it may be either.
    plain_[name] = known == plain_.end() && plain ? value : std::string();
  }

  bool inside_array(const Token& token) {
    if (token.text == "(" && array_ == 0) array_ = 1;
    if (token.text == ")") array_ = 0;
    return array_ != 0 && token.text == "\n";
  }

  static std::vector<Token> split(const std::string& text, int line) {
    std::vector<Token> tokens = Lexer(text).run();
    tokens.erase(std::remove_if(tokens.begin(), tokens.end(),
                                [](const Token& token) { return token.separator; }),
                 tokens.end());
    for (Token& token : tokens) token.line += line - 1;
    return tokens;
  }

  /// The words of one command or array: those before its first flag are the program's own.
  void end_command(std::vector<Token>& command) {
    std::vector<ShellWord> found;
    bool flags = false;
    for (const Token& token : command) {
      std::string text = token.text;
      if (!assigned_name(text).empty()) text = assigned_value(text);
      // A quoted text may hold a whole list.
      const std::vector<Token> parts = split(text, token.line);
      const bool list = parts.size() > 1 && is_flag(parts.front().text);
      const std::vector<Token> single = {{text, token.line, false}};
      for (const Token& part : list ? parts : single) {
        flags = flags || is_flag(part.text);
        if (!flags || lists_.count(expanded_name(part.text)) != 0) continue;
        found.push_back({resolved(part.text), part.line, false});
      }
    }
    if (!found.empty()) found.back().ends_command = true;
    words_.insert(words_.end(), found.begin(), found.end());
    command.clear();
  }

  std::string resolved(const std::string& word) const {
    const auto known = plain_.find(expanded_name(word));
    return known == plain_.end() || known->second.empty() ? word : known->second;
  }

  std::vector<Token> tokens_;
  std::map<std::string, bool> lists_;
  std::map<std::string, std::string> plain_;  ///< empty: not one plain word
  int array_ = 0;
  std::vector<ShellWord> words_;
};

}  // namespace

bool is_flag(std::string_view word) {
  return word.size() > 2 && word.starts_with("--");
}

std::vector<ShellWord> read_shell_words(const std::string& script) {
  return Script(script).words();
}

}  // namespace tessera::formats
