#include "spec/nearest.h"

#include <algorithm>

namespace tessera::spec {
namespace {

char folded(char c) {
  if (c == '-') return '_';
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

/// Whether one of the words is a part of the other, and not a trifle.
bool one_holds_the_other(std::string_view a, std::string_view b) {
  const std::string_view part = a.size() < b.size() ? a : b;
  const std::string_view whole = a.size() < b.size() ? b : a;
  const auto same = [](char x, char y) { return folded(x) == folded(y); };
  return part.size() >= 4 &&
         std::search(whole.begin(), whole.end(), part.begin(), part.end(), same) != whole.end();
}

}  // namespace

int edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the table suffice: a swap looks two rows back.
  std::vector<int> before(b.size() + 1);
  std::vector<int> previous(b.size() + 1);
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) previous[j] = static_cast<int>(j);
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i);
    for (size_t j = 1; j <= b.size(); ++j) {
      const int replaced = previous[j - 1] + (folded(a[i - 1]) == folded(b[j - 1]) ? 0 : 1);
      row[j] = std::min({previous[j] + 1, row[j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) &&
                           folded(a[i - 2]) == folded(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, row);
  }
  return previous[b.size()];
}

std::string_view nearest_name(std::string_view word, const std::vector<std::string_view>& names) {
  std::string_view nearest;
  int fewest = 0;
  for (const std::string_view name : names) {
    const int edits = edit_distance(word, name);
    const int allowed = std::max(2, static_cast<int>(std::max(word.size(), name.size())) / 3);
    // A word of which nothing is left is no neighbour.
    if (edits > allowed || edits >= static_cast<int>(std::max(word.size(), name.size()))) continue;
    if (nearest.empty() || edits < fewest) {
      nearest = name;
      fewest = edits;
    }
  }
  if (!nearest.empty()) return nearest;
  int matches = 0;
  for (const std::string_view name : names) {
    if (!one_holds_the_other(word, name)) continue;
    nearest = name;
    ++matches;
  }
  return matches == 1 ? nearest : std::string_view{};
}

std::vector<int64_t> nearest_divisors(int64_t n, int64_t wish) {
  int64_t below = 0;
  int64_t above = 0;
  const auto consider = [&](int64_t divisor) {
    if (divisor <= wish) below = std::max(below, divisor);
    if (divisor > wish) above = above == 0 ? divisor : std::min(above, divisor);
  };
  for (int64_t divisor = 1; divisor <= n / divisor; ++divisor) {
    if (n % divisor != 0) continue;
    consider(divisor);
    consider(n / divisor);
  }
  std::vector<int64_t> result;
  if (below > 0) result.push_back(below);
  if (above > 0) result.push_back(above);
  return result;
}

std::string join_or(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) {
    if (i > 0) text += i + 1 == words.size() ? " or " : ", ";
    text += words[i];
  }
  return text;
}

}  // namespace tessera::spec
