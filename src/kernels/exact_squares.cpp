#include "kernels/exact_squares.h"

#include <cmath>
#include <mutex>

#include "kernels/fixed_point.h"
#include "kernels/parallel.h"

namespace tessera::kernels {

namespace {

__extension__ typedef unsigned __int128 Wide;
constexpr int64_t kBlock = int64_t{1} << 16;

/// Σ q² of a block: 2^16 squares of up to 126 bits, in 192.
void add_block(SquareDigits& digits, const int64_t* q, int64_t n) {
  Wide low = 0;
  uint64_t high = 0;
  for (int64_t i = 0; i < n; ++i) {
    const auto magnitude = static_cast<uint64_t>(q[i] < 0 ? -q[i] : q[i]);
    const Wide square = static_cast<Wide>(magnitude) * magnitude;
    low += square;
    high += low < square ? 1 : 0;
  }
  for (size_t i = 0; i < 4; ++i) {
    digits[i] += static_cast<int64_t>(static_cast<uint64_t>(low >> (32 * i)) & 0xffffffffu);
  }
  digits[4] += static_cast<int64_t>(high & 0xffffffffu);
  digits[5] += static_cast<int64_t>(high >> 32);
}

}  // namespace

void add_squares(SquareDigits& digits, core::ConstView sums) {
  const auto* q = sums.as<int64_t>();
  std::mutex mutex;
  parallel_blocks(sums.elements(), kBlock, sums.elements(), [&](int64_t begin, int64_t count) {
    SquareDigits part{};
    add_block(part, q + begin, count);
    const std::lock_guard lock(mutex);  // integers: whoever comes first
    for (size_t i = 0; i < part.size(); ++i) digits[i] += part[i];
  });
}

double from_square_digits(const SquareDigits& digits) {
  SquareDigits carried = digits;
  for (size_t i = 0; i + 1 < carried.size(); ++i) {
    carried[i + 1] += carried[i] >> 32;
    carried[i] &= 0xffffffff;
  }
  double value = 0;
  for (size_t i = carried.size(); i-- > 0;) {
    value = value * 0x1p32 + static_cast<double>(carried[i]);
  }
  return std::ldexp(value, -2 * kFixedPointBits);
}

}  // namespace tessera::kernels
