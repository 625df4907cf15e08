#pragma once

// That training on several ranks is the training of one is a statement about sums. These
// demonstrations make it in double precision, with the kernels and collectives of a real run, on
// eight ranks that are threads: where a sum is only taken in another order the difference is
// rounding, and where one is left out the result is wrong.

#include <cstdint>
#include <string>
#include <vector>

namespace tessera::train {

inline constexpr int kExactRanks = 8;

/// Whether a demonstration shows that ranks agree, or that they would not.
enum class Expected : uint8_t {
  equal,  ///< error <= bound
  wrong,  ///< error >= bound: a counter-example
};

/// What one demonstration has measured.
struct Demonstration {
  std::string name;   ///< stable, "column_split"
  std::string shows;  ///< one or two sentences
  Expected expected = Expected::equal;
  double error = 0;   ///< largest absolute difference from one rank, over elements and ranks
  double bound = 0;   ///< from the numbers' precision where equal; a thousandth where wrong
  int64_t bytes = 0;  ///< sent by all ranks for the result, without what compares it

  bool as_expected() const { return expected == Expected::equal ? error <= bound : error >= bound; }
};

/// X [1, 2] times W [2, 4], small enough to be checked by hand, on two ranks.
struct WorkedExample {
  std::vector<double> x, w;                     ///< W by rows
  std::vector<double> whole;                    ///< XW on one rank
  std::vector<std::vector<double>> by_columns;  ///< of each rank: two columns of XW
  std::vector<double> joined;                   ///< those, gathered
  std::vector<std::vector<double>> by_rows;     ///< of each rank: a summand of XW
  std::vector<double> summed;                   ///< those, all-reduced
};

struct ExactReport {
  WorkedExample worked;
  std::vector<Demonstration> demonstrations;  ///< in the order in which they build on each other

  bool as_expected() const;
};

/// Runs all demonstrations, on operands drawn from `seed`: the same numbers in every run. Takes
/// milliseconds. Throws what ranks throw (core/error.h).
ExactReport demonstrate_exactness(uint64_t seed);

}  // namespace tessera::train
