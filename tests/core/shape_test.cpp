#include "core/shape.h"

#include <gtest/gtest.h>

#include <type_traits>
#include <vector>

namespace tessera::core {
namespace {

TEST(Shape, CountsElementsRowsAndTheLastDimension) {
  const Shape shape{2, 3, 4, 5};
  EXPECT_EQ(shape.dims(), 4);
  EXPECT_EQ(shape[1], 3);
  EXPECT_EQ(shape.elements(), 120);
  EXPECT_EQ(shape.rows(), 24);
  EXPECT_EQ(shape.last(), 5);
}

TEST(Shape, IsMadeOfAListAndGivesItBack) {
  const std::vector<int64_t> sizes{2, 3, 4};
  const Shape shape = Shape::of(sizes);
  EXPECT_EQ(shape, (Shape{2, 3, 4}));
  EXPECT_EQ(std::vector<int64_t>(shape.sizes().begin(), shape.sizes().end()), sizes);
  EXPECT_EQ(Shape::of({}), Shape());
  EXPECT_TRUE(Shape().sizes().empty());
}

TEST(Shape, HasAtMostFourDimensions) {
  const std::vector<int64_t> five(5, 1);
  EXPECT_THROW(Shape::of(five), InternalError);
  static_assert(!std::is_constructible_v<Shape, int64_t, int64_t, int64_t, int64_t, int64_t>);
}

TEST(Shape, OfAVectorIsOneRow) {
  const Shape shape{7};
  EXPECT_EQ(shape.rows(), 1);
  EXPECT_EQ(shape.last(), 7);
}

TEST(Shape, OfAScalarHasOneElement) {
  const Shape scalar;
  EXPECT_EQ(scalar.dims(), 0);
  EXPECT_EQ(scalar.elements(), 1);
  EXPECT_EQ(scalar.rows(), 1);
  EXPECT_EQ(scalar.last(), 1);
}

TEST(Shape, MayBeEmptyInOneDimension) {
  const Shape shape{0, 5};
  EXPECT_EQ(shape.elements(), 0);
  EXPECT_EQ(shape.rows(), 0);
  EXPECT_EQ(shape.last(), 5);
}

TEST(Shape, DiffersWhereDimensionsDoThoughElementsAgree) {
  EXPECT_EQ((Shape{2, 3}), (Shape{2, 3}));
  EXPECT_NE((Shape{2, 3}), (Shape{3, 2}));
  EXPECT_NE((Shape{6}), (Shape{6, 1}));
}

TEST(Shape, MultipliesBeyond32Bits) {
  EXPECT_EQ((Shape{1 << 20, 1 << 20}).elements(), int64_t{1} << 40);
}

}  // namespace
}  // namespace tessera::core
