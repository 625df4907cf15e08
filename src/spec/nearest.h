#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::spec {

/// Edits (insert, delete, replace, swap neighbours) that turn one word into the other: the optimal
/// string alignment distance. Dashes equal underscores and case does not count.
int edit_distance(std::string_view a, std::string_view b);

/// The name that was probably meant: the one with the fewest edits, if those are at most a third of
/// the longer word (two at least), or else the only one of which `word` is a part or which is a
/// part of it; empty when no name is near.
std::string_view nearest_name(std::string_view word, const std::vector<std::string_view>& names);

/// The divisors of n that lie nearest to `wish`: the largest at most `wish` and the smallest above
/// it, ascending; one when there is no other. n >= 1.
std::vector<int64_t> nearest_divisors(int64_t n, int64_t wish);

/// "a, b or c".
std::string join_or(const std::vector<std::string>& words);

}  // namespace tessera::spec
