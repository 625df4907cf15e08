#include "data/pretokenizer.h"

#include <algorithm>

#include "data/utf8.h"

namespace tessera::data {

Pretokenizer::Pretokenizer(const std::vector<PretokenizerStep>& steps) {
  steps_.reserve(steps.size());
  for (const PretokenizerStep& step : steps) {
    steps_.push_back({Pattern(step.pattern), !step.pattern.empty(), step.behavior, step.invert,
                      step.add_prefix_space});
  }
}

void PieceReader::cut_any(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const size_t valid = utf8_valid_prefix(text);
    if (valid > 0) cut(text.substr(0, valid), visit);
    if (valid < text.size()) visit(text.substr(valid, 1));
    text.remove_prefix(std::min(valid + 1, text.size()));
  }
}

void PieceReader::cut(size_t step, std::string_view text, const Visit& visit) {
  if (text.empty()) return;
  if (step == pretokenizer_.steps_.size()) return visit(text);
  const Step& now = pretokenizer_.steps_[step];
  if (now.add_prefix_space && text[0] != ' ') {
    const std::string with_space = " " + std::string(text);
    return split(step, with_space, visit);
  }
  split(step, text, visit);
}

/// Calls `found` with the matches and what lies between them, in order.
template <class Found>
void PieceReader::find_all(const Step& step, std::string_view given, const Found& found) {
  std::string buffer;
  const std::string_view text = step.pattern.matchable(given, buffer);
  size_t done = 0;            // up to here all pieces were found
  size_t from = 0;            // where to look on
  bool just_matched = false;  // a match ends at `from`
  while (from <= text.size()) {
    const auto match = matcher_.find(step.pattern, text, from);
    if (!match) break;
    const bool empty = match->begin == match->end;
    if (empty && just_matched && match->begin == from) {
      // No empty match right behind another match: look on from the next character.
      if (from == text.size()) break;
      from += std::max<size_t>(1, utf8_character_bytes(text.substr(from)));
      just_matched = false;
      continue;
    }
    if (done < match->begin) found(Piece{done, match->begin, step.invert});
    found(Piece{match->begin, match->end, !step.invert});
    done = from = match->end;
    just_matched = true;
  }
  if (done < text.size()) found(Piece{done, text.size(), step.invert});
}

void PieceReader::split(size_t step, std::string_view text, const Visit& visit) {
  const Step& now = pretokenizer_.steps_[step];
  const auto next = [&](const Piece& piece) {
    cut(step + 1, text.substr(piece.begin, piece.end - piece.begin), visit);
  };
  if (!now.cuts) return next({0, text.size(), false});
  if (now.behavior == SplitBehavior::isolated) return find_all(now, text, next);
  if (now.behavior == SplitBehavior::removed) {
    return find_all(now, text, [&](const Piece& piece) {
      if (!piece.match) next(piece);
    });
  }
  // The others join a piece and the one behind it: a match that follows none, none that follows a
  // match, or two of a kind.
  const auto joins = [&](const Piece& first, const Piece& second) {
    switch (now.behavior) {
      case SplitBehavior::merged_with_previous:
        return !first.match && second.match;
      case SplitBehavior::merged_with_next:
        return first.match && !second.match;
      default:
        return first.match == second.match;
    }
  };
  Piece last{0, 0, false};
  bool any = false;
  find_all(now, text, [&](const Piece& piece) {
    if (any && joins(last, piece)) {
      last = {last.begin, piece.end, piece.match};
      return;
    }
    if (any) next(last);
    last = piece;
    any = true;
  });
  if (any) next(last);
}

}  // namespace tessera::data
