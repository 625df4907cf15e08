#include "kernels/exact_squares.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/rng.h"
#include "kernels/fixed_point.h"

namespace tessera::kernels {
namespace {

core::ConstView view_of(const std::vector<int64_t>& values) {
  return {values.data(), core::DType::i64, {static_cast<int64_t>(values.size())}};
}

double squares_of(const std::vector<int64_t>& values) {
  SquareDigits digits{};
  add_squares(digits, view_of(values));
  return from_square_digits(digits);
}

TEST(ExactSquares, AreThoseOfTheNumbersThatTheSumsStandFor) {
  constexpr int64_t kOne = int64_t{1} << kFixedPointBits;
  EXPECT_EQ(squares_of({}), 0.0);
  EXPECT_EQ(squares_of({3 * kOne, -4 * kOne}), 25.0);
  EXPECT_EQ(squares_of({kOne / 2}), 0.25);
  EXPECT_EQ(squares_of({1}), 0x1p-80);
}

TEST(ExactSquares, DoNotDependOnHowTheyAreCut) {
  std::vector<int64_t> values(200'003);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t bits = core::philox(1, i, 0)[0];
    values[i] = (static_cast<int64_t>(bits << 21) - (int64_t{1} << 52)) >> (i % 40);
  }
  const double whole = squares_of(values);
  for (const size_t parts : {2, 3, 7}) {
    SquareDigits sum{};
    for (size_t part = parts; part-- > 0;) {
      const size_t begin = values.size() * part / parts, end = values.size() * (part + 1) / parts;
      SquareDigits digits{};
      add_squares(digits, view_of({values.begin() + static_cast<std::ptrdiff_t>(begin),
                                   values.begin() + static_cast<std::ptrdiff_t>(end)}));
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += digits[i];
    }
    EXPECT_EQ(from_square_digits(sum), whole) << parts;
  }
}

TEST(ExactSquares, LoseNothingWhereFp64Would) {
  // A large square and many that each are below its last bit.
  constexpr int64_t kLarge = int64_t{1} << 52;
  std::vector<int64_t> values(1 << 20, int64_t{1} << 20);
  values.push_back(kLarge);
  EXPECT_EQ(squares_of(values), 0x1p24 + 0x1p-20);
}

TEST(ExactSquares, HoldTheLargestSums) {
  const std::vector<int64_t> values(1 << 17, INT64_MAX);
  EXPECT_NEAR(squares_of(values) / (0x1p46 * 0x1p17), 1.0, 1e-15);
  const std::vector<int64_t> negative(1 << 17, -INT64_MAX);
  EXPECT_EQ(squares_of(negative), squares_of(values));
}

}  // namespace
}  // namespace tessera::kernels
