// Just enough of a shell's grammar for the scripts that start Megatron: argument lists live in
// NAME=(…) arrays, in texts that a variable gathers, and behind the program's name. Nothing is run:
// each flag is taken where it is written, in the order of the text, also inside an `if`; an
// expansion of a variable whose flags were so taken adds nothing, any other is kept as a word.

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include "formats/import/entry.h"
#include "formats/import/shell_lexer.h"

namespace tessera::formats {
namespace {

constexpr int kMaxNesting = 8;  ///< of variables and defaults in one another

/// The name that `word` assigns to, or nothing; NAME=… and NAME+=….
std::string assigned_name(const std::string& word) {
  size_t end = 0;
  while (end < word.size() && is_shell_name_char(word[end])) ++end;
  const std::string name = word.substr(0, end);
  if (end < word.size() && word[end] == '+') ++end;
  const bool assigns = end < word.size() && word[end] == '=' && !name.empty() &&
                       std::isdigit(static_cast<unsigned char>(name[0])) == 0;
  return assigns ? name : std::string();
}

std::string assigned_value(const std::string& word) {
  return word.substr(word.find('=') + 1);
}

/// What a word expands, if it is one expansion and nothing else.
struct Expansion {
  std::string name;                        ///< of $NAME, ${NAME}, ${NAME[@]} and ${NAME:-default}
  std::optional<std::string> alternative;  ///< that default
};

std::optional<Expansion> expansion_in(const std::string& word) {
  if (word.size() < 2 || word[0] != '$' || expansion_end(word, 0) != word.size()) return {};
  if (word[1] != '{') return Expansion{word.substr(1), std::nullopt};
  const std::string inside = word.substr(2, word.size() - 3);
  size_t end = 0;
  while (end < inside.size() && is_shell_name_char(inside[end])) ++end;
  Expansion expansion{inside.substr(0, end), std::nullopt};
  std::string rest = inside.substr(end);
  for (const char* all : {"[@]", "[*]"}) {
    if (rest.starts_with(all)) rest.erase(0, 3);
  }
  for (const char* otherwise : {":-", ":=", "-", "="}) {
    if (!rest.starts_with(otherwise)) continue;
    expansion.alternative = rest.substr(std::string(otherwise).size());
    return expansion;
  }
  return rest.empty() && !expansion.name.empty() ? std::optional(expansion) : std::nullopt;
}

/// A default that is one plain word, or none; quotes round it are not of it.
std::optional<std::string> plain_default(const std::optional<std::string>& alternative) {
  if (!alternative) return std::nullopt;
  const std::vector<ShellToken> pieces = lex_arguments(*alternative, 0);
  if (pieces.size() > 1) return std::nullopt;
  return pieces.empty() ? std::string() : pieces.front().text;
}

/// Whether an expansion stands anywhere in the text.
bool is_open(const std::string& text) {
  return text.find_first_of("$`") != std::string::npos;
}

/// Whether something like a flag stands anywhere in the text: -- before a letter and after no
/// letter.
bool mentions_flag(const std::string& text) {
  for (size_t at = text.find("--"); at != std::string::npos; at = text.find("--", at + 1)) {
    const bool starts = at == 0 || !(is_shell_name_char(text[at - 1]) || text[at - 1] == '/');
    const bool letter =
        at + 2 < text.size() && std::isalpha(static_cast<unsigned char>(text[at + 2])) != 0;
    if (starts && letter) return true;
  }
  return false;
}

/// The words of a text of arguments. A default that holds flags counts as those.
std::vector<ShellToken> pieces_of(const std::string& text, int line, int depth = 0) {
  std::vector<ShellToken> pieces;
  for (ShellToken& piece : lex_arguments(text, line)) {
    const std::optional<Expansion> expansion = expansion_in(piece.text);
    const bool alternative =
        expansion && expansion->alternative && mentions_flag(*expansion->alternative);
    if (!alternative || depth == kMaxNesting) {
      pieces.push_back(std::move(piece));
      continue;
    }
    const std::string inside = plain_default(expansion->alternative)  // quotes round a list
                                   .value_or(*expansion->alternative);
    for (ShellToken& inner : pieces_of(inside, piece.line, depth + 1)) {
      pieces.push_back(std::move(inner));
    }
    pieces.push_back({"${" + expansion->name + ":-}", piece.line, false});
  }
  return pieces;
}

bool any_flag(const std::vector<ShellToken>& pieces) {
  return std::any_of(pieces.begin(), pieces.end(),
                     [](const ShellToken& piece) { return is_flag(piece.text); });
}

/// A simple command with the assignments before it, or the inside of NAME=(…).
struct Command {
  std::string array;  ///< that NAME
  std::vector<ShellToken> words;
};

std::vector<Command> commands_of(const std::vector<ShellToken>& tokens) {
  std::vector<Command> commands(1);
  for (const ShellToken& token : tokens) {
    Command& last = commands.back();
    if (!token.separator) {
      last.words.push_back(token);
      continue;
    }
    if (token.text == "\n" && !last.array.empty()) continue;
    Command next;
    if (token.text == "(" && !last.words.empty() && last.words.back().text.ends_with('=')) {
      next.array = assigned_name(last.words.back().text);
    }
    commands.push_back(std::move(next));
  }
  return commands;
}

class Script {
 public:
  explicit Script(std::vector<Command> commands) : commands_(std::move(commands)) {
    for (const Command& command : commands_) learn(command);
  }

  std::vector<ShellWord> words() {
    for (const Command& command : commands_) {
      if (command.array.empty()) {
        take_command(command);
      } else {
        take_list(pieces_of_words(command.words), command.array);
      }
    }
    return std::move(words_);
  }

 private:
  /// Assignments stand before the first flag; name=value behind one is its value.
  static size_t first_flag(const Command& command) {
    const auto found =
        std::find_if(command.words.begin(), command.words.end(), [](const ShellToken& word) {
          return mentions_flag(word.text) && assigned_name(word.text).empty();
        });
    return static_cast<size_t>(found - command.words.begin());
  }

  void learn(const Command& command) {
    if (!command.array.empty()) {
      set_to_[command.array].push_back(pieces_of_words(command.words));
      return;
    }
    const size_t end = first_flag(command);
    for (size_t i = 0; i < end; ++i) {
      const ShellToken& word = command.words[i];
      const std::string name = assigned_name(word.text);
      if (!name.empty()) set_to_[name].push_back(pieces_of(assigned_value(word.text), word.line));
    }
  }

  static std::vector<ShellToken> pieces_of_words(const std::vector<ShellToken>& words) {
    std::vector<ShellToken> pieces;
    for (const ShellToken& word : words) {
      if (!is_list(word.text)) {
        pieces.push_back(word);
        continue;
      }
      for (ShellToken& piece : pieces_of(word.text, word.line)) pieces.push_back(std::move(piece));
    }
    return pieces;
  }

  /// Whether a quoted text is a list of arguments, and not one of them: "--lr 1", "$ARGS --lr 1",
  /// "torchrun x.py --lr 1 --seed 2".
  static bool is_list(const std::string& text) {
    const std::vector<ShellToken> pieces = pieces_of(text, 0);
    if (pieces.empty() || !any_flag(pieces)) return false;
    const auto flags = std::count_if(pieces.begin(), pieces.end(),
                                     [](const ShellToken& piece) { return is_flag(piece.text); });
    return is_flag(pieces.front().text) || expansion_in(pieces.front().text) || flags > 1;
  }

  /// Whether everything that the variable may hold is taken where it is assigned.
  bool is_taken(const std::string& name, int depth = 0) const {
    const auto found = set_to_.find(name);
    if (found == set_to_.end() || depth == kMaxNesting || ++asked_ > kMostAsked) return false;
    bool list = false;
    for (const std::vector<ShellToken>& pieces : found->second) {
      if (any_flag(pieces)) {
        list = true;
        continue;
      }
      for (const ShellToken& piece : pieces) {
        const std::optional<Expansion> inner = expansion_in(piece.text);
        if (!inner) return false;
        if (inner->name == name) continue;
        if (!is_taken(inner->name, depth + 1)) return false;
        list = true;
      }
    }
    return list;
  }
  bool is_taken_list(const std::string& name) const {
    asked_ = 0;
    return is_taken(name);
  }

  /// The one plain word that the script sets the variable to.
  std::optional<std::string> plain(const std::string& name) const {
    const auto found = set_to_.find(name);
    if (found == set_to_.end() || found->second.size() != 1) return std::nullopt;
    const std::vector<ShellToken>& pieces = found->second.front();
    if (pieces.empty()) return std::string();
    if (pieces.size() > 1) return std::nullopt;
    const std::string& text = pieces.front().text;
    if (!is_open(text)) return text;
    const std::optional<Expansion> expansion = expansion_in(text);
    if (!expansion || (expansion->name != name && set_to_.count(expansion->name) != 0)) {
      return std::nullopt;
    }
    const std::optional<std::string> otherwise = plain_default(expansion->alternative);
    return otherwise && !is_open(*otherwise) ? otherwise : std::nullopt;
  }

  /// The word with the variables in it replaced, as far as the script says what they hold; `self`
  /// is the one that is being assigned.
  std::string resolved(const std::string& word, const std::string& self, int depth = 0) const {
    std::string text;
    for (size_t at = 0; at < word.size();) {
      const size_t end = expansion_end(word, at);
      if (end == std::string::npos) return text + word.substr(at);
      if (end == at) {
        text += word[at++];
        continue;
      }
      const std::string expanded = word.substr(at, end - at);
      at = end;
      const std::optional<Expansion> expansion = expansion_in(expanded);
      const std::optional<std::string> value = expansion ? plain(expansion->name) : std::nullopt;
      const std::optional<std::string> otherwise =
          expansion ? plain_default(expansion->alternative) : std::nullopt;
      if (value) {
        text += *value;
      } else if (otherwise && depth < kMaxNesting && is_set_.count(expansion->name) == 0 &&
                 (expansion->name == self || set_to_.count(expansion->name) == 0)) {
        text += resolved(*otherwise, self, depth + 1);
      } else {
        text += expanded;
      }
    }
    return text;
  }

  /// Whether a command starts training, so that what is spliced into it are arguments.
  bool takes_arguments(const Command& command) const {
    return std::any_of(command.words.begin(), command.words.end(), [&](const ShellToken& word) {
      const std::optional<Expansion> expansion = expansion_in(word.text);
      return word.text.ends_with(".py") || (expansion && is_taken_list(expansion->name));
    });
  }

  void take_command(const Command& command) {
    const size_t first = first_flag(command);
    std::vector<ShellToken> pieces;
    for (size_t i = 0; i < command.words.size(); ++i) {
      const ShellToken& word = command.words[i];
      const std::string name = i < first ? assigned_name(word.text) : std::string();
      if (!name.empty()) {
        take_list(pieces_of(assigned_value(word.text), word.line), name);
        continue;
      }
      // A text with the first flag in it is no value of another.
      const bool text = i == first && !is_flag(word.text);
      const auto parts = text ? pieces_of(word.text, word.line) : pieces_of_words({word});
      pieces.insert(pieces.end(), parts.begin(), parts.end());
    }
    if (first < command.words.size() || takes_arguments(command)) take(pieces, "");
  }

  /// Takes what a variable is set to, if there are flags in it.
  void take_list(const std::vector<ShellToken>& pieces, const std::string& name) {
    const bool any = std::any_of(pieces.begin(), pieces.end(),
                                 [](const ShellToken& piece) { return mentions_flag(piece.text); });
    if (any) take(pieces, name);
    is_set_.insert(name);
  }

  /// Words from the first flag on, and what is spliced in before it. `self` is the variable that
  /// they are assigned to: what it held before is taken already if the script has set it.
  void take(const std::vector<ShellToken>& pieces, const std::string& self) {
    bool flags = false;
    for (const ShellToken& piece : pieces) {
      const std::optional<Expansion> expansion = expansion_in(piece.text);
      const bool earlier = expansion && (expansion->name != self || is_set_.count(self) != 0);
      if (earlier && !mentions_flag(piece.text) && is_taken_list(expansion->name)) {
        if (flags) words_.back().ends_command = true;
        continue;
      }
      const std::string text = resolved(piece.text, self);
      if (text.empty() && expansion) continue;  // a default that is nothing
      const bool spliced = is_open(text) && !text.ends_with(".py");
      const bool counts = flags || spliced || mentions_flag(text);
      if (!counts) continue;
      words_.push_back({text, piece.line, !flags && !is_flag(text)});
      flags = flags || is_flag(text);
    }
    if (flags) words_.back().ends_command = true;
  }

  static constexpr int kMostAsked = 1000;

  std::vector<Command> commands_;
  /// What each variable is set to, once for each assignment.
  std::map<std::string, std::vector<std::vector<ShellToken>>> set_to_;
  std::set<std::string> is_set_;  ///< above the words that are being taken
  mutable int asked_ = 0;
  std::vector<ShellWord> words_;
};

}  // namespace

bool is_flag(std::string_view word) {
  return word.size() > 2 && word.starts_with("--");
}

std::vector<ShellWord> read_shell_words(const std::string& script, const std::string& where) {
  return Script(commands_of(lex_script(script, where))).words();
}

}  // namespace tessera::formats
