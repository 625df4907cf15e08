#include "kernels/columns.h"

#include "kernels/operands.h"

namespace tessera::kernels::testing {
namespace {

constexpr DType kFloatTypes[] = {DType::f64, DType::f32, DType::bf16};

TEST(CopyRows, MovesAPartOfEveryRowAndNothingElse) {
  for (DType dtype : kFloatTypes) {
    for (const int64_t rows : {0, 1, 7, 3000}) {
      Operand from(dtype, {rows, 19}, 1), to(dtype, {rows, 23}, 2), before(dtype, {rows, 23});
      from.fill(1), to.fill(2), before.fill(2);
      if (rows > 0) {
        copy_rows(to.view().slice(5, {12}), 23, from.view().slice(3, {12}), 19, rows, 12);
      }
      for (int64_t n = 0; n < rows; ++n) {
        for (int64_t c = 0; c < 23; ++c) {
          const bool inside = c >= 5 && c < 17;
          ASSERT_EQ(to.at(n * 23 + c), inside ? from.at(n * 19 + c - 2) : before.at(n * 23 + c));
        }
      }
      EXPECT_TRUE(to.guards_intact());
    }
  }
}

TEST(AddColumns, AddsToThePartOfEveryRowAndToNothingElse) {
  for (DType dtype : kFloatTypes) {
    for (const int64_t rows : {1, 7, 3000}) {
      Operand x(dtype, {rows, 12}, 1), y(dtype, {rows, 23}, 2), before(dtype, {rows, 23});
      x.fill(1), y.fill(2), before.fill(2);
      add_columns(y.view(), 5, x.view());
      for (int64_t n = 0; n < rows; ++n) {
        for (int64_t c = 0; c < 23; ++c) {
          const bool inside = c >= 5 && c < 17;
          const double was = before.at(n * 23 + c);
          const double wanted = inside ? was + x.at(n * 12 + c - 5) : was;
          ASSERT_NEAR(y.at(n * 23 + c), wanted, inside ? 2 * unit_roundoff(dtype) : 0);
        }
      }
      EXPECT_TRUE(y.guards_intact());
    }
  }
}

TEST(AddColumns, RefusesColumnsBeyondTheRow) {
  Operand x(DType::f32, {2, 3}), y(DType::f32, {2, 4});
  EXPECT_THROW(add_columns(y.view(), 2, x.view()), core::InternalError);
}

}  // namespace
}  // namespace tessera::kernels::testing
