#include "comm/operation.h"

#include <gtest/gtest.h>

namespace tessera::comm {
namespace {

using core::DType;
using kernels::ReduceOp;

TEST(Operation, SurvivesPacking) {
  const Operation operation{OperationKind::broadcast, ReduceOp::min, DType::bf16, 513,
                            int64_t{1} << 40,         4'000'000'000};
  const Operation back = unpack(pack(operation));
  EXPECT_EQ(back.kind, operation.kind);
  EXPECT_EQ(back.op, operation.op);
  EXPECT_EQ(back.dtype, operation.dtype);
  EXPECT_EQ(back.peer, operation.peer);
  EXPECT_EQ(back.elements, operation.elements);
  EXPECT_EQ(back.sequence, operation.sequence);
}

TEST(Operation, DiffersInItsWordsWhereverItDiffers) {
  const Operation base{OperationKind::all_reduce, ReduceOp::sum, DType::f32, 0, 10, 1};
  Operation other = base;
  other.kind = OperationKind::reduce_scatter;
  EXPECT_NE(pack(other), pack(base));
  other = base;
  other.op = ReduceOp::max;
  EXPECT_NE(pack(other), pack(base));
  other = base;
  other.dtype = DType::i32;
  EXPECT_NE(pack(other), pack(base));
  other = base;
  other.peer = 1;
  EXPECT_NE(pack(other), pack(base));
  other = base;
  other.elements = 11;
  EXPECT_NE(pack(other), pack(base));
  other = base;
  other.sequence = 2;
  EXPECT_NE(pack(other), pack(base));
}

TEST(Operation, IsDescribedInTheFieldsOwnTerms) {
  EXPECT_EQ(describe({OperationKind::all_reduce, ReduceOp::sum, DType::f32, 0, 1 << 20, 123}, 17),
            "all-reduce #123 (fp32 sum, 4194304 bytes) of step 17");
  EXPECT_EQ(describe({OperationKind::broadcast, ReduceOp::sum, DType::bf16, 3, 8, 4}, -1),
            "broadcast #4 (bf16 from rank 3, 16 bytes)");
  EXPECT_EQ(describe({OperationKind::recv, ReduceOp::sum, DType::i64, 2, 1, 9}, 0),
            "recv #9 from rank 2 (int64, 8 bytes) of step 0");
  EXPECT_EQ(describe({OperationKind::barrier, ReduceOp::sum, DType::u8, 0, 0, 5}, -1),
            "barrier #5");
}

}  // namespace
}  // namespace tessera::comm
