#include "core/view.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace tessera::core {
namespace {

class ViewTest : public ::testing::Test {
 protected:
  void SetUp() override { std::iota(numbers_.begin(), numbers_.end(), 0.0f); }

  std::vector<float> numbers_ = std::vector<float>(24);
  View view_{numbers_.data(), DType::f32, {4, 6}};
};

TEST_F(ViewTest, KnowsItsBytes) {
  EXPECT_EQ(view_.elements(), 24);
  EXPECT_EQ(view_.bytes(), 96);
}

TEST_F(ViewTest, SlicesFromAnElementOn) {
  const View slice = view_.slice(7, {2, 3});
  EXPECT_EQ(slice.as<float>()[0], 7);
  EXPECT_EQ(slice.as<float>()[5], 12);
  EXPECT_EQ(slice.shape, (Shape{2, 3}));
}

TEST_F(ViewTest, SlicesUpToItsEndAndToNothing) {
  EXPECT_EQ(view_.slice(23, {1}).as<float>()[0], 23);
  EXPECT_EQ(view_.slice(24, {0}).elements(), 0);
}

TEST_F(ViewTest, RefusesASliceThatLeavesIt) {
  EXPECT_THROW(view_.slice(23, {2}), InternalError);
  EXPECT_THROW(view_.slice(-1, {2}), InternalError);
  EXPECT_THROW(ConstView(view_).slice(23, {2}), InternalError);
}

TEST_F(ViewTest, WritesThroughASlice) {
  view_.slice(6, {6}).as<float>()[1] = -5;
  EXPECT_EQ(numbers_[7], -5);
}

TEST_F(ViewTest, ReshapesToAsManyElementsOnly) {
  EXPECT_EQ(view_.reshaped({2, 12}).shape, (Shape{2, 12}));
  EXPECT_EQ(view_.reshaped({2, 12}).data, view_.data);
  EXPECT_THROW(view_.reshaped({5, 5}), InternalError);
}

TEST_F(ViewTest, RefusesToBeReadAsAnotherType) {
  EXPECT_THROW(view_.as<double>(), InternalError);
  EXPECT_THROW(ConstView(view_).as<int32_t>(), InternalError);
}

TEST_F(ViewTest, BecomesReadOnlyWithoutACopy) {
  const ConstView read = view_;
  EXPECT_EQ(read.data, view_.data);
  EXPECT_EQ(read.slice(3, {2}).as<float>()[1], 4);
}

TEST_F(ViewTest, IsFalseOnlyWithoutData) {
  EXPECT_TRUE(view_);
  EXPECT_FALSE(View{});
  EXPECT_FALSE(ConstView{});
}

TEST_F(ViewTest, CountsBytesByItsDtype) {
  std::vector<bf16> halves(10);
  const View view{halves.data(), DType::bf16, {10}};
  EXPECT_EQ(view.bytes(), 20);
  EXPECT_EQ(view.slice(4, {2}).data, halves.data() + 4);
}

}  // namespace
}  // namespace tessera::core
