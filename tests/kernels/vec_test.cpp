#include <bit>
#include <cmath>
#include <limits>

#include "kernels/guarded.h"
#include "kernels/vec_probe.h"

namespace tessera::kernels {
namespace {

using core::bf16;
using oracle::Guarded;

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<const probe::Probes*> available() {
  std::vector<const probe::Probes*> result;
  if (isa() >= Isa::avx2) result.push_back(&probe::avx2());
  if (isa() >= Isa::avx512) result.push_back(&probe::avx512());
  return result;
}

/// The largest error of `function` over [low, high], in units of eps of the exact result.
template <class Exact>
double worst_error(void (*function)(float*, const float*, int64_t), const Exact& exact, double low,
                   double high) {
  constexpr int64_t kPoints = 200'001;
  Guarded<float> x(kPoints), y(kPoints);
  for (int64_t i = 0; i < kPoints; ++i) {
    x.data()[i] = static_cast<float>(low + (high - low) * static_cast<double>(i) / (kPoints - 1));
  }
  function(y.data(), x.data(), kPoints);
  double worst = 0;
  for (int64_t i = 0; i < kPoints; ++i) {
    const double right = exact(x[i]);
    // Below the smallest normal number a unit is absolute.
    const double unit = std::max(std::abs(right), 0x1p-126) * oracle::epsilon<float>();
    worst = std::max(worst, std::abs(y[i] - right) / unit);
  }
  return worst;
}

TEST(Vec, ExponentialsAreWithinTwoUnits) {
  for (const auto* v : available()) {
    EXPECT_LE(worst_error(v->exp, [](double x) { return std::exp(x); }, -104, 88.72), 2);
    EXPECT_LE(worst_error(v->exp, [](double x) { return std::exp(x); }, -1, 1), 2);
    EXPECT_LE(worst_error(v->exp2, [](double x) { return std::exp2(x); }, -150, 127.9), 2);
  }
}

TEST(Vec, ExponentialsKnowTheirLimits) {
  const std::vector<float> x{0, -0.0f, -kInf, kInf, NAN, -1e30f, 1000, -200};
  for (const auto* v : available()) {
    std::vector<float> y(x.size());
    const auto n = static_cast<int64_t>(x.size());
    v->exp(y.data(), x.data(), n);
    EXPECT_EQ(y[0], 1);
    EXPECT_EQ(y[1], 1);
    EXPECT_EQ(y[2], 0);
    EXPECT_EQ(y[3], kInf);
    EXPECT_TRUE(std::isnan(y[4]));
    EXPECT_EQ(y[5], 0);
    EXPECT_EQ(y[6], kInf);
    EXPECT_EQ(y[7], 0);
    v->exp2(y.data(), x.data(), n);
    EXPECT_EQ(y[0], 1);
    EXPECT_TRUE(std::isnan(y[4]));
    EXPECT_EQ(y[5], 0);
    EXPECT_EQ(y[7], 0);
  }
}

TEST(Vec, TouchesJustTheElementsAskedFor) {
  for (const auto* v : available()) {
    for (int64_t n = 0; n <= 3 * v->width; ++n) {
      for (const int64_t offset : {0, 1, 3}) {
        const auto x = Guarded<float>::normal(n, 31, 1, offset);
        const auto half = Guarded<bf16>::normal(n, 32, 1, offset);
        Guarded<float> copied(n, offset), widened(n, offset);
        Guarded<bf16> narrowed(n, offset);
        v->copy_f32(copied.data(), x.data(), n);
        v->widen(widened.data(), half.data(), n);
        v->narrow(narrowed.data(), x.data(), n);
        EXPECT_EQ(copied.values(), x.values());
        EXPECT_EQ(widened.values(), half.values());
        for (int64_t i = 0; i < n; ++i) {
          EXPECT_EQ(narrowed.data()[i].bits, bf16(x.data()[i]).bits);
        }
        EXPECT_TRUE(copied.guards_hold() && widened.guards_hold() && narrowed.guards_hold());
      }
    }
  }
}

TEST(Vec, RoundsToBf16LikeTheScalar) {
  std::vector<float> x;
  for (const uint32_t upper : {0x3f80u, 0x3f81u, 0x0000u, 0x8000u, 0x7f7fu, 0xff7fu, 0x7f80u,
                               0xff80u, 0x7fc0u, 0x7f81u, 0x0001u}) {
    for (const uint32_t lower : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      x.push_back(std::bit_cast<float>((upper << 16) | lower));
    }
  }
  for (const auto* v : available()) {
    std::vector<bf16> y(x.size());
    v->narrow(y.data(), x.data(), static_cast<int64_t>(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_EQ(y[i].bits, bf16(x[i]).bits) << std::hex << std::bit_cast<uint32_t>(x[i]);
    }
  }
}

TEST(Vec, ReducesAcrossAllElements) {
  for (const auto* v : available()) {
    for (int place = 0; place < v->width; ++place) {
      std::vector<float> x(static_cast<size_t>(v->width), -4);
      x[static_cast<size_t>(place)] = 64;
      const auto others = static_cast<float>(-4 * (v->width - 1));
      EXPECT_EQ(v->reduce_add(x.data()), 64 + others);
      EXPECT_EQ(v->reduce_max(x.data()), 64);
      // x² + x: 64 · 65, and 12 for each other.
      EXPECT_EQ(v->reduce_add_f64(x.data()), 64 * 65 + 12 * (v->width - 1));
    }
  }
}

TEST(Vec, Transposes) {
  for (const auto* v : available()) {
    const int w = v->width;
    std::vector<float> x(static_cast<size_t>(w * w)), y(x.size());
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    v->transpose(y.data(), x.data());
    for (int i = 0; i < w; ++i) {
      for (int j = 0; j < w; ++j) EXPECT_EQ(y[i * w + j], x[j * w + i]);
    }
  }
}

TEST(Vec, ComputesLikeTheScalar) {
  for (const auto* v : available()) {
    const int w = v->width;
    const auto a = Guarded<float>::normal(w, 41, 3), b = Guarded<float>::normal(w, 42, 3);
    std::vector<float> y(static_cast<size_t>(probe::kArithmetic * w));
    v->arithmetic(y.data(), a.data(), b.data());
    for (int i = 0; i < w; ++i) {
      const float p = a.data()[i], q = b.data()[i];
      const float expected[] = {p - q,
                                p * q,
                                p / q,
                                std::max(p, q),
                                std::min(p, q),
                                std::fma(p, q, 1.0f),
                                std::fma(-p, q, 1.0f),
                                std::abs(p),
                                std::sqrt(std::abs(p)),
                                std::copysign(p, q),
                                std::nearbyint(p),
                                p < q ? p : 1};
      for (int f = 0; f < probe::kArithmetic; ++f) EXPECT_EQ(y[f * w + i], expected[f]) << f;
    }
  }
}

}  // namespace
}  // namespace tessera::kernels
