#include "kernels/dropout.h"

#include "kernels/operands.h"
#include "kernels/ref/dropout.h"

namespace tessera::kernels::testing {
namespace {

constexpr DropoutKey kKey{.p = 0.25f, .key = 99, .step = 5, .place = 13};

Operand sample_numbers(std::vector<double> numbers) {
  Operand samples(DType::i64, {static_cast<int64_t>(numbers.size())});
  for (size_t i = 0; i < numbers.size(); ++i) samples.set(static_cast<int64_t>(i), numbers[i]);
  return samples;
}

TEST(Dropout, AgreesWithTheReferenceAtEveryLength) {
  Operand samples = sample_numbers({3, 1LL << 40});
  std::vector<int64_t> sizes = lengths();
  for (int64_t n : {20000, 40001}) sizes.push_back(n);  // beyond one block of a row
  for (int64_t n : sizes) {
    Operand x(DType::f32, {2, n}, 1), y(DType::f32, {2, n}, 2), expected(DType::f32, {2, n});
    x.fill(1);
    for (int64_t b = 0; b < 2; ++b) {
      ref::dropout(expected.view().as<float>() + b * n, x.view().as<float>() + b * n, n,
                   static_cast<int64_t>(samples.at(b)), dropout_call_key(kKey),
                   dropout_threshold(kKey.p), 1 / (1 - kKey.p));
    }
    dropout_forward(y.view(), x.view(), samples.view(), kKey);
    EXPECT_EQ(y.raw(), expected.raw()) << n;
    EXPECT_TRUE(y.guards_intact());
  }
}

TEST(Dropout, DropsItsShareAndScalesTheRest) {
  const int64_t n = 200000;
  for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    Operand samples = sample_numbers({7}), x(dtype, {1, n}), y(dtype, {1, n});
    x.fill_with(3);
    dropout_forward(y.view(), x.view(), samples.view(), kKey);
    int64_t dropped = 0;
    for (int64_t i = 0; i < n; ++i) {
      if (y.at(i) == 0) {
        ++dropped;
      } else {
        ASSERT_NEAR(y.at(i), 4, 1e-6);
      }
    }
    // The share is binomial with a deviation of 0.001.
    EXPECT_NEAR(static_cast<double>(dropped) / static_cast<double>(n), 0.25, 0.005);
  }
}

TEST(Dropout, GivesASampleItsMaskWhereverItLies) {
  Operand both = sample_numbers({11, 22}), second = sample_numbers({22});
  Operand x(DType::f32, {2, 300}), y(DType::f32, {2, 300}), alone(DType::f32, {1, 300});
  x.fill_with(1);
  dropout_forward(y.view(), x.view(), both.view(), kKey);
  dropout_forward(alone.view(), x.view().slice(0, {1, 300}), second.view(), kKey);
  for (int64_t i = 0; i < 300; ++i) EXPECT_EQ(alone.at(i), y.at(300 + i));
}

TEST(Dropout, MasksASliceAsWithinItsSample) {
  constexpr int64_t kWhole = 1000;
  Operand samples = sample_numbers({11, 22});
  Operand x(DType::f32, {2, kWhole}), whole(DType::f32, {2, kWhole});
  x.fill(1);
  dropout_forward(whole.view(), x.view(), samples.view(), kKey);
  for (const int64_t first : {0, 1, 2, 3, 4, 63, 254, 256, 511}) {
    for (const int64_t n : {1, 2, 5, 255, 256, 257, 489}) {
      Operand part(DType::f32, {2, n}, 1), y(DType::f32, {2, n}, 2);
      for (int64_t i = 0; i < 2 * n; ++i) part.set(i, x.at(i / n * kWhole + first + i % n));
      dropout_forward(y.view(), part.view(), samples.view(), kKey, first);
      dropout_backward(part.view(), part.view(), samples.view(), kKey, first);
      for (int64_t i = 0; i < 2 * n; ++i) {
        ASSERT_EQ(y.at(i), whole.at(i / n * kWhole + first + i % n)) << first << " " << n;
      }
      EXPECT_EQ(part.raw(), y.raw());
      EXPECT_TRUE(y.guards_intact());
    }
  }
}

TEST(Dropout, DrawsOtherMasksForAnotherStepPlaceSampleAndSeed) {
  Operand x(DType::f32, {1, 300});
  x.fill_with(1);
  const auto mask = [&](DropoutKey key, double sample) {
    Operand samples = sample_numbers({sample}), y(DType::f32, {1, 300});
    dropout_forward(y.view(), x.view(), samples.view(), key);
    return y.raw();
  };
  const std::string base = mask(kKey, 1);
  DropoutKey step = kKey, place = kKey, seed = kKey;
  step.step += 1, place.place += 1, seed.key += 1;
  EXPECT_EQ(mask(kKey, 1), base);
  EXPECT_NE(mask(step, 1), base);
  EXPECT_NE(mask(place, 1), base);
  EXPECT_NE(mask(seed, 1), base);
  EXPECT_NE(mask(kKey, 2), base);
}

TEST(Dropout, MasksTheGradientAsItMaskedTheInput) {
  Operand samples = sample_numbers({4, 5}), x(DType::bf16, {2, 77}), y(DType::bf16, {2, 77});
  x.fill_with(1);
  dropout_forward(y.view(), x.view(), samples.view(), kKey);
  dropout_backward(x.view(), x.view(), samples.view(), kKey);  // in place
  EXPECT_EQ(x.raw(), y.raw());
}

TEST(Dropout, CopiesWhenNothingIsDropped) {
  Operand samples = sample_numbers({4}), x(DType::f32, {1, 50}), y(DType::f32, {1, 50});
  x.fill(1);
  dropout_forward(y.view(), x.view(), samples.view(), {});
  EXPECT_EQ(x.raw(), y.raw());
  dropout_forward(x.view(), x.view(), samples.view(), {});
  EXPECT_EQ(x.raw(), y.raw());
}

TEST(Dropout, DoesNotDependOnTheNumberOfThreads) {
  Operand samples = sample_numbers({4, 9, 2}), x(DType::f32, {3, 30000});
  Operand one(DType::f32, {3, 30000}), two(DType::f32, {3, 30000});
  x.fill(1);
  {
    TeamOf team(1);
    dropout_forward(one.view(), x.view(), samples.view(), kKey);
  }
  {
    TeamOf team(2);
    dropout_forward(two.view(), x.view(), samples.view(), kKey);
  }
  EXPECT_EQ(one.raw(), two.raw());
}

}  // namespace
}  // namespace tessera::kernels::testing
