#include "kernels/attention.h"

#include <functional>

#include "kernels/attention_call.h"
#include "kernels/guarded.h"
#include "kernels/ref/attention.h"

namespace tessera::kernels {
namespace {

using oracle::available_isas;
using oracle::bf16;
using oracle::DType;
using oracle::epsilon;
using oracle::Guarded;
using oracle::Threads;

struct Setting {
  int64_t B, T, H, G, D;
  bool documents = false;
  float dropout = 0;
  int64_t offset = 0;  ///< of every operand's first element
  int64_t first_head = 0;
};

/// Operands of one setting, and both directions run on them.
template <class T>
class Attention {
 public:
  using F = typename AttentionCall<T>::F;

  /// The operands are the same numbers for every T, rounded to bf16.
  explicit Attention(const Setting& setting)
      : s(setting),
        qkv(rounded(s.B * s.T * (s.H + 2 * s.G) * s.D, 21, s.offset)),
        dout(rounded(s.B * s.T * s.H * s.D, 22, s.offset)),
        out(s.B * s.T * s.H * s.D, s.offset),
        lse(s.B * s.H * s.T, s.offset),
        dqkv(qkv.size(), s.offset),
        scratch(attention_scratch_bytes(shape(), num_threads()) / 4) {
    for (int64_t b = 0; b < s.B; ++b) {
      samples.push_back(1000 + 17 * b);
      int32_t start = 0;
      for (int32_t t = 0; t < s.T; ++t) {
        // Documents of uneven lengths, some of one token, others longer than a tile.
        if (s.documents && (t % 37 == 11 + b || t % 37 == 12 || t % 101 == 0)) start = t;
        starts.push_back(start);
      }
    }
    dropout.p = s.dropout;
    dropout.key = 99;
    dropout.step = 3;
    dropout.place = 5;
  }

  void forward() {
    attention_forward(out.view(), lse.view(), qkv.view(), starts_view(), samples_view(), dropout,
                      scratch_view(), shape());
  }
  void backward() {
    attention_backward(dqkv.view(), dout.view(), qkv.view(), out.view(), lse.view(), starts_view(),
                       samples_view(), dropout, scratch_view(), shape());
  }
  AttentionShape shape() const {
    return {s.B, s.T, s.H, s.G, s.D, 1 / std::sqrt(static_cast<float>(s.D)), s.first_head};
  }
  ConstView starts_view() const {
    if (!s.documents) return {};
    return {starts.data(), DType::i32, {s.B, s.T}};
  }
  ConstView samples_view() const { return {samples.data(), DType::i64, {s.B}}; }
  View scratch_view() { return {scratch.data(), DType::u8, {scratch.size() * 4}}; }
  bool guards_hold() const {
    return out.guards_hold() && lse.guards_hold() && dqkv.guards_hold() && scratch.guards_hold();
  }

  Setting s;
  Guarded<T> qkv, dout, out;
  Guarded<F> lse;
  Guarded<T> dqkv;
  Guarded<float> scratch;
  std::vector<int32_t> starts;
  std::vector<int64_t> samples;
  DropoutKey dropout;

 private:
  static Guarded<T> rounded(int64_t count, uint64_t seed, int64_t offset) {
    const auto half = Guarded<bf16>::normal(count, seed);
    Guarded<T> result(count, offset);
    for (int64_t i = 0; i < count; ++i) result.data()[i] = oracle::from_double<T>(half[i]);
    return result;
  }
};

/// Relative distance in L2, and the largest error against the largest value.
void expect_close(const std::vector<double>& actual, const std::vector<double>& expected,
                  double tolerance, const char* what) {
  double error = 0, size = 0, worst = 0, largest = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(std::isfinite(actual[i])) << what << " at " << i;
    const double difference = std::abs(actual[i] - expected[i]);
    error += difference * difference;
    size += expected[i] * expected[i];
    worst = std::max(worst, difference);
    largest = std::max(largest, std::abs(expected[i]));
  }
  EXPECT_LE(std::sqrt(error), tolerance * std::sqrt(size)) << what;
  EXPECT_LE(worst, 4 * tolerance * largest) << what;
}

/// fp32: sums of D and of T terms. bf16: up to four roundings of 2^-9 on the way (out, the
/// probabilities, their gradients, the result), whatever the sizes.
template <class T>
double tolerance(const Setting& s) {
  if (std::is_same_v<T, bf16>) return epsilon<bf16>();
  return static_cast<double>(s.D + s.T) * epsilon<float>();
}

template <class T>
void expect_equals_reference(const Setting& s) {
  Attention<double> expected(s);
  expected.forward();
  expected.backward();
  Attention<T> actual(s);
  actual.forward();
  actual.backward();
  expect_close(actual.out.values(), expected.out.values(), tolerance<T>(s), "out");
  expect_close(actual.lse.values(), expected.lse.values(),
               static_cast<double>(s.D + s.T) * epsilon<float>(), "lse");
  expect_close(actual.dqkv.values(), expected.dqkv.values(), tolerance<T>(s), "dqkv");
  EXPECT_TRUE(actual.guards_hold());
}

/// Every implementation of both storage types.
void expect_every_isa_equals_reference(const Setting& s) {
  SCOPED_TRACE(::testing::Message() << "B " << s.B << " T " << s.T << " H " << s.H << " G " << s.G
                                    << " D " << s.D << (s.documents ? " documents" : "")
                                    << " dropout " << s.dropout << " offset " << s.offset);
  for (const Isa isa : available_isas()) {
    SCOPED_TRACE(static_cast<int>(isa));
    const IsaLimit limit(isa);
    expect_equals_reference<float>(s);
    expect_equals_reference<bf16>(s);
  }
}

TEST(Attention, IsTheSoftmaxOfScaledScoresTimesTheValues) {
  Attention<double> a({1, 7, 2, 1, 4});
  a.forward();
  const auto row = [&](int64_t t, int64_t part) { return a.qkv.data() + (t * 4 + part) * 4; };
  for (int64_t h = 0; h < 2; ++h) {
    for (int64_t t = 0; t < 7; ++t) {
      double weights = 0, sums[4] = {};
      for (int64_t k = 0; k <= t; ++k) {
        double score = 0;
        for (int64_t d = 0; d < 4; ++d) score += row(t, h)[d] * row(k, 2)[d];
        const double weight = std::exp(score / 2);
        weights += weight;
        for (int64_t d = 0; d < 4; ++d) sums[d] += weight * row(k, 3)[d];
      }
      EXPECT_NEAR(a.lse[h * 7 + t], std::log(weights), 1e-12);
      for (int64_t d = 0; d < 4; ++d) {
        EXPECT_NEAR(a.out[(t * 2 + h) * 4 + d], sums[d] / weights, 1e-12);
      }
    }
  }
}

TEST(Attention, BackwardOfTheReferenceIsTheSlopeOfForward) {
  Attention<double> a({2, 9, 4, 2, 3, true, 0.3f});
  a.forward();
  a.backward();
  const auto gradient = a.dqkv.values();
  const auto objective = [&] {
    a.forward();
    double sum = 0;
    for (int64_t i = 0; i < a.out.size(); ++i) sum += a.out[i] * a.dout[i];
    return sum;
  };
  for (int64_t i = 0; i < a.qkv.size(); ++i) {
    constexpr double kStep = 1e-5;
    const double at = a.qkv[i];
    a.qkv.data()[i] = at + kStep;
    const double above = objective();
    a.qkv.data()[i] = at - kStep;
    const double below = objective();
    a.qkv.data()[i] = at;
    ASSERT_NEAR(gradient[i], (above - below) / (2 * kStep), 1e-7) << i;
  }
}

/// The first `count` heads of each of `rows` rows, from rows of from_heads heads to rows of
/// to_heads.
template <class T>
void copy_heads(T* to, int64_t to_heads, const T* from, int64_t from_heads, int64_t count,
                int64_t rows, int64_t D) {
  for (int64_t i = 0; i < rows; ++i) {
    std::copy_n(from + i * from_heads * D, count * D, to + i * to_heads * D);
  }
}

/// Two of four heads, and the key-value head that they read, are what they are among all.
template <class T>
void expect_heads_to_be_as_in_the_whole() {
  Setting s{2, 70, 4, 2, 8, true, 0.3f};
  Attention<T> whole(s);
  whole.forward();
  whole.backward();
  s.H = 2, s.G = 1, s.first_head = 2;
  Attention<T> part(s);
  const int64_t rows = s.B * s.T, D = s.D;
  for (const auto& [to, from, count] : {std::tuple{0, 2, 2}, {2, 5, 1}, {3, 7, 1}}) {
    copy_heads(part.qkv.data() + to * D, 4, whole.qkv.data() + from * D, 8, count, rows, D);
  }
  copy_heads(part.dout.data(), 2, whole.dout.data() + 2 * D, 4, 2, rows, D);
  part.forward();
  part.backward();
  Guarded<T> out(part.out.size()), dqkv(part.dqkv.size());
  copy_heads(out.data(), 2, whole.out.data() + 2 * D, 4, 2, rows, D);
  for (const auto& [to, from, count] : {std::tuple{0, 2, 2}, {2, 5, 1}, {3, 7, 1}}) {
    copy_heads(dqkv.data() + to * D, 4, whole.dqkv.data() + from * D, 8, count, rows, D);
  }
  EXPECT_EQ(part.out.values(), out.values());
  EXPECT_EQ(part.dqkv.values(), dqkv.values());
}

TEST(Attention, DropsOutAHeadsProbabilitiesByItsNumberInTheModel) {
  expect_heads_to_be_as_in_the_whole<double>();
  for (const Isa isa : available_isas()) {
    const IsaLimit limit(isa);
    expect_heads_to_be_as_in_the_whole<float>();
    expect_heads_to_be_as_in_the_whole<bf16>();
  }
}

TEST(Attention, EqualsTheReferenceAtEveryLengthRoundAVector) {
  for (int64_t T = 1; T <= 35; ++T) expect_every_isa_equals_reference({1, T, 1, 1, 16});
}

TEST(Attention, EqualsTheReferenceAtLengthsRoundATile) {
  for (const int64_t T : {63, 64, 65, 127, 129, 255, 257, 321}) {
    expect_every_isa_equals_reference({1, T, 1, 1, 32});
  }
}

TEST(Attention, EqualsTheReferenceAtEveryHeadWidth) {
  for (const int64_t D : {1, 2, 3, 7, 8, 9, 15, 17, 24, 31, 33, 48, 64, 65, 80, 96, 128, 256}) {
    expect_every_isa_equals_reference({1, 37, 2, 2, D});
  }
}

TEST(Attention, SharesKeysAndValuesAmongAGroupOfHeads) {
  expect_every_isa_equals_reference({2, 70, 6, 2, 24});
  expect_every_isa_equals_reference({1, 70, 4, 1, 64});
}

TEST(Attention, KeepsDocumentsApart) {
  expect_every_isa_equals_reference({2, 45, 2, 1, 16, true});
  expect_every_isa_equals_reference({1, 400, 1, 1, 16, true});
}

TEST(Attention, DropsTheSameProbabilitiesOnEveryInstructionSet) {
  expect_every_isa_equals_reference({2, 70, 3, 1, 16, false, 0.1f});
  expect_every_isa_equals_reference({2, 70, 4, 2, 16, true, 0.6f});
  expect_every_isa_equals_reference({1, 300, 1, 1, 16, false, 0.2f});
}

TEST(Attention, TakesMisalignedOperands) {
  for (const int64_t offset : {1, 3, 5}) {
    expect_every_isa_equals_reference({1, 50, 2, 1, 20, true, 0, offset});
  }
}

TEST(Attention, DropsTheShareThatWasAskedFor) {
  AttentionDropout dropout;
  const std::vector<int64_t> samples{7};
  dropout.on = true;
  dropout.key = 5;
  dropout.threshold = static_cast<uint32_t>(0.25 * (1 << 24));
  dropout.keep_scale = 1 / 0.75f;
  dropout.samples = samples.data();
  int kept = 0;
  constexpr int kSide = 200;
  for (int q = 0; q < kSide; ++q) {
    for (int k = 0; k < kSide; ++k) kept += ref::attention_factor(dropout, 0, 1, q, k) > 0 ? 1 : 0;
  }
  // Five standard deviations of a binomial.
  constexpr double kDraws = kSide * kSide;
  EXPECT_NEAR(kept, 0.75 * kDraws, 5 * std::sqrt(kDraws * 0.25 * 0.75));
}

template <class T>
void expect_blind_to_the_future() {
  Attention<T> whole({1, 300, 2, 1, 32});
  whole.forward();
  for (const int64_t t : {0, 30, 31, 32, 63, 64, 250}) {
    Attention<T> changed({1, 300, 2, 1, 32});
    const int64_t stride = 4 * 32;
    for (int64_t i = (t + 1) * stride; i < 300 * stride; ++i) changed.qkv.data()[i] = T(7.5f);
    changed.forward();
    const auto before = whole.out.values(), after = changed.out.values();
    for (int64_t i = 0; i < (t + 1) * 2 * 32; ++i) ASSERT_EQ(before[i], after[i]) << t;
  }
}

TEST(Attention, OfATokenDoesNotSeeLaterOnes) {
  for (const Isa isa : available_isas()) {
    const IsaLimit limit(isa);
    expect_blind_to_the_future<float>();
    expect_blind_to_the_future<bf16>();
  }
}

TEST(Attention, DoesNotDependOnTheNumberOfThreads) {
  std::vector<double> results[2];
  for (const int count : {1, 2}) {
    const Threads threads(count);
    Attention<bf16> a({3, 130, 4, 2, 32, true, 0.1f});
    a.forward();
    a.backward();
    results[count - 1] = a.out.values();
    const auto gradient = a.dqkv.values();
    results[count - 1].insert(results[count - 1].end(), gradient.begin(), gradient.end());
  }
  EXPECT_EQ(results[0], results[1]);
}

TEST(Attention, HoldsForScoresFarFromZero) {
  for (const Isa isa : available_isas()) {
    const IsaLimit limit(isa);
    Attention<float> a({1, 90, 1, 1, 16});
    for (int64_t i = 0; i < a.qkv.size(); ++i) a.qkv.data()[i] *= 30;
    a.forward();
    a.backward();
    for (const double x : a.out.values()) ASSERT_TRUE(std::isfinite(x));
    for (const double x : a.dqkv.values()) ASSERT_TRUE(std::isfinite(x));
  }
}

TEST(Attention, LetsANaNThrough) {
  for (const Isa isa : available_isas()) {
    const IsaLimit limit(isa);
    Attention<float> a({1, 40, 1, 1, 16});
    a.qkv.data()[20 * 48 + 16] = NAN;  // a key of token 20
    a.forward();
    EXPECT_TRUE(std::isfinite(a.out[19 * 16]));
    EXPECT_TRUE(std::isnan(a.out[20 * 16]));
    EXPECT_TRUE(std::isnan(a.out[39 * 16]));
  }
}

TEST(Attention, RefusesTooLittleScratchAndHeadsThatDoNotDivide) {
  Attention<float> a({1, 8, 2, 2, 16});
  const View little{a.scratch.data(), DType::u8, {64}};
  EXPECT_THROW(
      attention_forward(a.out.view(), a.lse.view(), a.qkv.view(), {}, {}, {}, little, a.shape()),
      core::InternalError);
  AttentionShape shape = a.shape();
  shape.num_kv_heads = 3;
  EXPECT_THROW(attention_forward(a.out.view(), a.lse.view(), a.qkv.view(), {}, {}, {},
                                 a.scratch_view(), shape),
               core::InternalError);
}

}  // namespace
}  // namespace tessera::kernels
