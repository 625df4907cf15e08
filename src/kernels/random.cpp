#include "kernels/random.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>

#include "kernels/parallel.h"
#include "kernels/philox_lanes.h"

// The library's logarithm and cosine choose their code by processor, and their last bits with it.
// A model's initial weights should not: what is here is plain fp64 arithmetic, to about 1e-9, in
// loops that compilers turn into vectors of any width without changing a bit.

namespace tessera::kernels {

namespace {

constexpr int64_t kQuads = PhiloxLanes::kLanes;
constexpr int64_t kBlock = 4 * kQuads;  // elements

/// A draw as fp64, exactly: its bits become the low mantissa of 2^52 + draw.
double exact(uint32_t draw) {
  return std::bit_cast<double>(0x4330000000000000u | uint64_t{draw}) - 0x1.0p52;
}

/// ln x for normal x > 0. x = 2^k · m with m in [√½, √2); ln m = 2 artanh((m − 1)/(m + 1)), whose
/// series in s², at most 0.0295 here, leaves 7e-10 after five terms.
double logarithm(double x) {
  constexpr uint64_t kSqrtHalf = 0x3fe6a09e667f3bcdu;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const uint64_t above = bits - kSqrtHalf;  // exponent field: k, modulo its 12 bits
  const uint64_t exponent = above & 0xfff0000000000000u;
  const double m = std::bit_cast<double>(bits - exponent);
  // k + 1024 is positive here; as the low mantissa of 2^52 it becomes fp64 without a conversion.
  const uint64_t shifted = (exponent + 0x4000000000000000u) >> 52;
  const double k = std::bit_cast<double>(0x4330000000000000u | shifted) - (0x1.0p52 + 1024);
  const double s = (m - 1) / (m + 1);
  const double s2 = s * s;
  const double series = 1 + s2 * (1.0 / 3 + s2 * (1.0 / 5 + s2 * (1.0 / 7 + s2 * (1.0 / 9))));
  return k * std::numbers::ln2 + 2 * s * series;
}

/// Cosine and sine of 2π · draw / 2^32. The nearest quarter turn comes off in integers; what is
/// left lies within π/4, where the Taylor series to the tenth degree is good to 2e-9.
void cosine_sine(uint32_t draw, double& cosine, double& sine) {
  const uint32_t quarter = (draw + 0x20000000u) >> 30;
  const auto rest = static_cast<int32_t>(draw - (quarter << 30));
  const double a = static_cast<double>(rest) * (std::numbers::pi * 0x1.0p-31);
  const double a2 = a * a;
  const double s =
      a * (1 + a2 * (-1.0 / 6 + a2 * (1.0 / 120 + a2 * (-1.0 / 5040 + a2 * (1.0 / 362880)))));
  const double c =
      1 + a2 * (-1.0 / 2 +
                a2 * (1.0 / 24 + a2 * (-1.0 / 720 + a2 * (1.0 / 40320 + a2 * (-1.0 / 3628800)))));
  const bool odd = (quarter & 1u) != 0;
  cosine = (odd ? s : c) * static_cast<double>(1 - static_cast<int32_t>((quarter + 1) & 2u));
  sine = (odd ? c : s) * static_cast<double>(1 - static_cast<int32_t>(quarter & 2u));
}

/// The elements of kQuads quads from `quad` on.
void normal_block(float (&out)[kBlock], uint64_t key, uint64_t tensor, int64_t quad, double std) {
  PhiloxLanes draws;
  draws.draw(key, tensor, static_cast<uint64_t>(quad));
  double radius[kQuads], cosine[kQuads], sine[kQuads];
  for (int pair = 0; pair < 2; ++pair) {
    for (int64_t i = 0; i < kQuads; ++i) {
      const double u = (exact(draws.x[2 * pair][i]) + 1) * 0x1.0p-32;  // in (0, 1]
      radius[i] = std * std::sqrt(-2 * logarithm(u));
    }
    for (int64_t i = 0; i < kQuads; ++i) {
      cosine_sine(draws.x[2 * pair + 1][i], cosine[i], sine[i]);
    }
    for (int64_t i = 0; i < kQuads; ++i) {
      out[4 * i + 2 * pair] = static_cast<float>(radius[i] * cosine[i]);
      out[4 * i + 2 * pair + 1] = static_cast<float>(radius[i] * sine[i]);
    }
  }
}

}  // namespace

void fill_normal(core::View y, uint64_t key, uint64_t tensor, int64_t first, float std) {
  CHECK(first >= 0);
  const int64_t n = y.elements();
  if (n == 0) return;
  float* out = y.as<float>();
  const int64_t first_block = first / kBlock;
  const int64_t end_block = (first + n - 1) / kBlock + 1;
  parallel_for(end_block - first_block, n, [&](int64_t i) {
    float block[kBlock];
    const int64_t origin = (first_block + i) * kBlock;
    normal_block(block, key, tensor, origin / 4, std);
    const int64_t begin = std::max(first, origin);
    const int64_t end = std::min(first + n, origin + kBlock);
    std::memcpy(out + (begin - first), block + (begin - origin),
                static_cast<size_t>(end - begin) * sizeof(float));
  });
}

}  // namespace tessera::kernels
