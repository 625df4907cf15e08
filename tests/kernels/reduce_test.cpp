#include "kernels/reduce.h"

#include <algorithm>

#include "kernels/operands.h"

namespace tessera::kernels::testing {
namespace {

constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::average, ReduceOp::max, ReduceOp::min};

bool is_integer(DType dtype) {
  return dtype == DType::i64 || dtype == DType::i32;
}

/// The contract, word for word, in the type that the dtype is reduced in.
template <class F>
double expected_element(const std::vector<Operand>& sources, int64_t i, ReduceOp op) {
  auto value = static_cast<F>(sources[0].at(i));
  for (size_t s = 1; s < sources.size(); ++s) {
    const auto next = static_cast<F>(sources[s].at(i));
    if (op == ReduceOp::max) {
      value = std::max(value, next);
    } else if (op == ReduceOp::min) {
      value = std::min(value, next);
    } else {
      value = value + next;
    }
  }
  if (op == ReduceOp::average) value = value / static_cast<F>(sources.size());
  return static_cast<double>(value);
}

std::vector<Operand> make_sources(DType dtype, int64_t n, int count) {
  std::vector<Operand> sources;
  for (int s = 0; s < count; ++s) {
    sources.push_back(Operand(dtype, {n}, s % 3));
    sources.back().fill(static_cast<uint64_t>(10 + s), -100, 100);
  }
  return sources;
}

std::vector<const void*> pointers(std::vector<Operand>& sources) {
  std::vector<const void*> all;
  for (Operand& source : sources) all.push_back(source.view().data);
  return all;
}

TEST(Reduce, FollowsItsContractToTheBitOnEveryInstructionSet) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::i64, DType::i32}) {
    for (ReduceOp op : kOps) {
      if (is_integer(dtype) && op == ReduceOp::average) continue;
      for (int count : {1, 2, 3, 8}) {
        for (int64_t n : lengths()) {
          std::vector<Operand> sources = make_sources(dtype, n, count);
          Operand expected(dtype, {n});
          for (int64_t i = 0; i < n; ++i) {
            const bool single = dtype == DType::f32 || dtype == DType::bf16;
            expected.set(i, single ? expected_element<float>(sources, i, op)
                                   : expected_element<double>(sources, i, op));
          }
          for (Isa set : {Isa::ref, Isa::avx2, Isa::avx512}) {
            IsaLimit limit(set);
            Operand out(dtype, {n}, 1);
            reduce(out.view().data, pointers(sources), n, dtype, op);
            ASSERT_EQ(out.raw(), expected.raw())
                << core::name_of(dtype) << " op " << static_cast<int>(op) << " of " << count
                << ", n " << n;
            ASSERT_TRUE(out.guards_intact());
          }
        }
      }
    }
  }
}

TEST(Reduce, MayWriteOverAnyOfItsSources) {
  for (int target : {0, 1, 2}) {
    std::vector<Operand> sources = make_sources(DType::f32, 100, 3);
    Operand apart(DType::f32, {100});
    reduce(apart.view().data, pointers(sources), 100, DType::f32, ReduceOp::sum);
    reduce(sources[static_cast<size_t>(target)].view().data, pointers(sources), 100, DType::f32,
           ReduceOp::sum);
    EXPECT_EQ(sources[static_cast<size_t>(target)].raw(), apart.raw());
  }
}

TEST(Reduce, RoundsABf16SumOnce) {
  // The neighbours of 256 are 255 and 258: rounding after each addition would lose both ones.
  std::vector<Operand> sources;
  for (double value : {256.0, 1.0, 1.0}) {
    sources.push_back(Operand(DType::bf16, {40}));
    sources.back().fill_with(value);
  }
  for (Isa set : {Isa::ref, Isa::avx2, Isa::avx512}) {
    IsaLimit limit(set);
    Operand out(DType::bf16, {40});
    reduce(out.view().data, pointers(sources), 40, DType::bf16, ReduceOp::sum);
    for (int64_t i = 0; i < 40; ++i) EXPECT_EQ(out.at(i), 258);
  }
}

TEST(Reduce, KeepsWholeNumbersBeyondFp64) {
  const int64_t a[] = {(int64_t{1} << 60) + 1}, b[] = {2};
  int64_t out[1];
  const void* both[] = {a, b};
  reduce(out, both, 1, DType::i64, ReduceOp::sum);
  EXPECT_EQ(out[0], (int64_t{1} << 60) + 3);
}

TEST(Reduce, PropagatesNanThroughSums) {
  std::vector<Operand> sources = make_sources(DType::f32, 20, 2);
  sources[0].set(17, std::nan(""));
  Operand out(DType::f32, {20});
  reduce(out.view().data, pointers(sources), 20, DType::f32, ReduceOp::sum);
  EXPECT_TRUE(std::isnan(out.at(17)));
  EXPECT_FALSE(std::isnan(out.at(16)));
}

TEST(Reduce, RefusesTheAverageOfIntegers) {
  std::vector<Operand> sources = make_sources(DType::i32, 4, 2);
  Operand out(DType::i32, {4});
  EXPECT_THROW(reduce(out.view().data, pointers(sources), 4, DType::i32, ReduceOp::average),
               core::InternalError);
}

TEST(Reduce, RefusesNoSourcesAndUnknownDtypes) {
  Operand out(DType::u8, {4});
  EXPECT_THROW(reduce(out.view().data, {}, 4, DType::f32, ReduceOp::sum), core::InternalError);
  const void* one[] = {out.view().data};
  EXPECT_THROW(reduce(out.view().data, one, 4, DType::u8, ReduceOp::sum), core::InternalError);
}

}  // namespace
}  // namespace tessera::kernels::testing
