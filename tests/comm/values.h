#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "core/rng.h"
#include "core/view.h"

// Inputs that tell where they come from, and comparisons that tell where they differ.

namespace tessera::comm_test {

/// Element `index` of `rank`: sums of these round, so their order shows in the bits.
inline float telltale(int rank, int64_t index) {
  const auto draw = core::philox(0x7e11, static_cast<uint64_t>(rank), static_cast<uint64_t>(index));
  const float magnitude = static_cast<float>(uint32_t{1} << (draw[1] % 12));
  return (core::to_uniform(draw[0]) - 0.5f) * magnitude;
}

inline std::vector<float> telltales(int rank, int64_t count, int64_t from = 0) {
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = telltale(rank, from + i);
  return values;
}

template <class T>
core::View view_of(std::vector<T>& values) {
  return {values.data(), core::dtype_of<T>, core::Shape{static_cast<int64_t>(values.size())}};
}
template <class T>
core::ConstView view_of(const std::vector<T>& values) {
  return {values.data(), core::dtype_of<T>, core::Shape{static_cast<int64_t>(values.size())}};
}

/// Empty when both are equal to the bit; otherwise where they first differ.
template <class T>
std::string difference(const char* what, const std::vector<T>& actual,
                       const std::vector<T>& expected) {
  if (actual.size() != expected.size()) return std::string(what) + ": another size; ";
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::memcmp(&actual[i], &expected[i], sizeof(T)) == 0) continue;
    return std::string(what) + ": element " + std::to_string(i) + " of " +
           std::to_string(actual.size()) + " differs; ";
  }
  return "";
}

}  // namespace tessera::comm_test
