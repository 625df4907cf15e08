#include "core/shape.h"

#include <gtest/gtest.h>

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
