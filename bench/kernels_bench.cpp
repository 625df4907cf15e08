// Bytes per second of the operations that memory bounds, on the threads of OMP_NUM_THREADS, beside
// a plain copy of the same run: a kernel at the copy's rate has nothing left to gain. Sizes are
// those of gpt2-124m on 4 × 256 tokens; TESSERA_ISA=ref|avx2 measures the narrower implementations.

#include <benchmark/benchmark.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "core/memory.h"
#include "core/rng.h"
#include "kernels/adamw.h"
#include "kernels/dropout.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/layernorm.h"
#include "kernels/random.h"
#include "kernels/reduce.h"
#include "kernels/rmsnorm.h"
#include "kernels/rope.h"
#include "kernels/swiglu.h"

namespace tessera::kernels {
namespace {

using core::Category;
using core::DType;
using core::Shape;

constexpr int64_t kTokens = 1024, kWidth = 768, kHidden = 3072, kVocabulary = 50304;
constexpr int64_t kParameters = int64_t{1} << 24;  // 64 MiB of fp32: beyond every cache

/// Tensors of one benchmark, filled with numbers of an ordinary size.
class Workspace {
 public:
  View tensor(DType dtype, Shape shape) {
    tensors_.emplace_back(ledger_, Category::activations, dtype, shape);
    const View view = tensors_.back().view();
    if (dtype == DType::f32 || dtype == DType::bf16) {
      core::Tensor draws(ledger_, Category::activations, DType::f32, shape);
      fill_normal(draws.view(), 7, tensors_.size(), 0, 1);
      cast(view, draws.view());
    }
    return view;
  }

 private:
  core::MemoryLedger ledger_;
  std::vector<core::Tensor> tensors_;
};

DType dtype_of_argument(const benchmark::State& state) {
  return state.range(0) == 0 ? DType::f32 : DType::bf16;
}

/// Runs `operation`, which moves `bytes` between memory and processor.
template <class Operation>
void measure(benchmark::State& state, int64_t bytes, const Operation& operation) {
  operation();
  for (auto _ : state) operation();
  state.SetBytesProcessed(state.iterations() * bytes);
}

void BM_Copy(benchmark::State& state) {
  Workspace space;
  const View x = space.tensor(DType::f32, {kParameters}),
             y = space.tensor(DType::f32, {kParameters});
  measure(state, 2 * x.bytes(), [&] { cast(y, x); });
}
BENCHMARK(BM_Copy)->UseRealTime();

void BM_LayernormForward(benchmark::State& state) {
  Workspace space;
  const DType dtype = dtype_of_argument(state);
  const int64_t N = state.range(1);
  const View x = space.tensor(dtype, {N, kWidth}), y = space.tensor(dtype, {N, kWidth});
  const View weight = space.tensor(dtype, {kWidth}), bias = space.tensor(dtype, {kWidth});
  const View mean = space.tensor(DType::f32, {N}), rstd = space.tensor(DType::f32, {N});
  measure(state, 2 * x.bytes(), [&] { layernorm_forward(y, mean, rstd, x, weight, bias, 1e-5f); });
}
BENCHMARK(BM_LayernormForward)->ArgsProduct({{0, 1}, {1024, 8192}})->UseRealTime();

void BM_LayernormBackwardInput(benchmark::State& state) {
  Workspace space;
  const DType dtype = dtype_of_argument(state);
  const int64_t N = state.range(1);
  const View x = space.tensor(dtype, {N, kWidth}), dy = space.tensor(dtype, {N, kWidth});
  const View dx = space.tensor(dtype, {N, kWidth}), weight = space.tensor(dtype, {kWidth});
  const View mean = space.tensor(DType::f32, {N}), rstd = space.tensor(DType::f32, {N});
  measure(state, 4 * x.bytes(),
          [&] { layernorm_backward_input(dx, dx, dy, x, weight, mean, rstd); });
}
BENCHMARK(BM_LayernormBackwardInput)->ArgsProduct({{0, 1}, {1024, 8192}})->UseRealTime();

void BM_LayernormBackwardWeight(benchmark::State& state) {
  Workspace space;
  const DType dtype = dtype_of_argument(state);
  const int64_t N = state.range(1);
  const View x = space.tensor(dtype, {N, kWidth}), dy = space.tensor(dtype, {N, kWidth});
  const View dweight = space.tensor(DType::f32, {kWidth}),
             dbias = space.tensor(DType::f32, {kWidth});
  const View mean = space.tensor(DType::f32, {N}), rstd = space.tensor(DType::f32, {N});
  measure(state, 2 * x.bytes(),
          [&] { layernorm_backward_weight(dweight, dbias, dy, x, mean, rstd); });
}
BENCHMARK(BM_LayernormBackwardWeight)->ArgsProduct({{0, 1}, {1024, 8192}})->UseRealTime();

void BM_GeluForward(benchmark::State& state) {
  Workspace space;
  const DType dtype = dtype_of_argument(state);
  const View x = space.tensor(dtype, {kTokens, kHidden}),
             y = space.tensor(dtype, {kTokens, kHidden});
  measure(state, 2 * x.bytes(), [&] { gelu_forward(y, x); });
}
BENCHMARK(BM_GeluForward)->Arg(0)->Arg(1)->UseRealTime();

void BM_GeluBackward(benchmark::State& state) {
  Workspace space;
  const DType dtype = dtype_of_argument(state);
  const View x = space.tensor(dtype, {kTokens, kHidden});
  const View dy = space.tensor(dtype, {kTokens, kHidden});
  const View dx = space.tensor(dtype, {kTokens, kHidden});
  measure(state, 3 * x.bytes(), [&] { gelu_backward(dx, dy, x); });
}
BENCHMARK(BM_GeluBackward)->Arg(0)->Arg(1)->UseRealTime();

void BM_RmsnormForward(benchmark::State& state) {
  Workspace space;
  const DType dtype = dtype_of_argument(state);
  const int64_t N = state.range(1);
  const View x = space.tensor(dtype, {N, kWidth}), y = space.tensor(dtype, {N, kWidth});
  const View weight = space.tensor(dtype, {kWidth}), rstd = space.tensor(DType::f32, {N});
  measure(state, 2 * x.bytes(), [&] { rmsnorm_forward(y, rstd, x, weight, 1e-5f); });
}
BENCHMARK(BM_RmsnormForward)->ArgsProduct({{0, 1}, {1024, 8192}})->UseRealTime();

void BM_RmsnormBackwardInput(benchmark::State& state) {
  Workspace space;
  const DType dtype = dtype_of_argument(state);
  const int64_t N = state.range(1);
  const View x = space.tensor(dtype, {N, kWidth}), dy = space.tensor(dtype, {N, kWidth});
  const View dx = space.tensor(dtype, {N, kWidth}), weight = space.tensor(dtype, {kWidth});
  const View rstd = space.tensor(DType::f32, {N});
  measure(state, 4 * x.bytes(), [&] { rmsnorm_backward_input(dx, dx, dy, x, weight, rstd); });
}
BENCHMARK(BM_RmsnormBackwardInput)->ArgsProduct({{0, 1}, {1024, 8192}})->UseRealTime();

void BM_RmsnormBackwardWeight(benchmark::State& state) {
  Workspace space;
  const DType dtype = dtype_of_argument(state);
  const int64_t N = state.range(1);
  const View x = space.tensor(dtype, {N, kWidth}), dy = space.tensor(dtype, {N, kWidth});
  const View dweight = space.tensor(DType::f32, {kWidth}), rstd = space.tensor(DType::f32, {N});
  measure(state, 2 * x.bytes(), [&] { rmsnorm_backward_weight(dweight, dy, x, rstd); });
}
BENCHMARK(BM_RmsnormBackwardWeight)->ArgsProduct({{0, 1}, {1024, 8192}})->UseRealTime();

// Llama's sizes of about the same model: 12 heads and 4 key-value heads of width 64, an MLP of
// 2048.
void BM_Rope(benchmark::State& state) {
  Workspace space;
  const RopeShape shape{4, 256, 16, 64, 20 * 64};
  const View x = space.tensor(dtype_of_argument(state), {kTokens, shape.row_elements});
  const View cos = space.tensor(DType::f32, {256, 32}), sin = space.tensor(DType::f32, {256, 32});
  measure(state, 2 * x.bytes() * 16 / 20, [&] { rope_forward(x, cos, sin, shape); });
}
BENCHMARK(BM_Rope)->Arg(0)->Arg(1)->UseRealTime();

void BM_SwigluForward(benchmark::State& state) {
  Workspace space;
  const DType dtype = dtype_of_argument(state);
  const View gate_up = space.tensor(dtype, {kTokens, 4096}),
             y = space.tensor(dtype, {kTokens, 2048});
  measure(state, gate_up.bytes() + y.bytes(), [&] { swiglu_forward(y, gate_up); });
}
BENCHMARK(BM_SwigluForward)->Arg(0)->Arg(1)->UseRealTime();

void BM_SwigluBackward(benchmark::State& state) {
  Workspace space;
  const DType dtype = dtype_of_argument(state);
  const View gate_up = space.tensor(dtype, {kTokens, 4096}),
             dy = space.tensor(dtype, {kTokens, 2048});
  const View dgate_up = space.tensor(dtype, {kTokens, 4096});
  measure(state, 2 * gate_up.bytes() + dy.bytes(), [&] { swiglu_backward(dgate_up, dy, gate_up); });
}
BENCHMARK(BM_SwigluBackward)->Arg(0)->Arg(1)->UseRealTime();

void BM_Add(benchmark::State& state) {
  Workspace space;
  const DType dtype = dtype_of_argument(state);
  const View a = space.tensor(dtype, {kParameters}), b = space.tensor(dtype, {kParameters});
  measure(state, 3 * a.bytes(), [&] { add(a, a, b); });
}
BENCHMARK(BM_Add)->Arg(0)->Arg(1)->UseRealTime();

void BM_CastToBf16(benchmark::State& state) {
  Workspace space;
  const View x = space.tensor(DType::f32, {kParameters}),
             y = space.tensor(DType::bf16, {kParameters});
  measure(state, x.bytes() + y.bytes(), [&] { cast(y, x); });
}
BENCHMARK(BM_CastToBf16)->UseRealTime();

struct Embedding {
  Embedding(Workspace& space, DType dtype, DType weights)
      : ids(space.tensor(DType::i32, {4, 256})),
        tokens(space.tensor(weights, {kVocabulary, kWidth})),
        positions(space.tensor(weights, {1024, kWidth})),
        activations(space.tensor(dtype, {4, 256, kWidth})) {
    for (int64_t i = 0; i < kTokens; ++i) {
      ids.as<int32_t>()[i] = static_cast<int32_t>(core::philox(1, 2, static_cast<uint64_t>(i))[0] %
                                                  static_cast<uint32_t>(kVocabulary));
    }
  }
  View ids, tokens, positions, activations;
};

void BM_EmbeddingForward(benchmark::State& state) {
  Workspace space;
  const DType dtype = dtype_of_argument(state);
  const Embedding e(space, dtype, dtype);
  measure(state, 3 * e.activations.bytes(),
          [&] { embedding_forward(e.activations, e.ids, e.tokens, e.positions); });
}
BENCHMARK(BM_EmbeddingForward)->Arg(0)->Arg(1)->UseRealTime();

void BM_EmbeddingBackward(benchmark::State& state) {
  Workspace space;
  const Embedding e(space, dtype_of_argument(state), DType::f32);
  // For tokens and for positions: a gradient read, a sum read and written.
  const int64_t bytes = 2 * (e.activations.bytes() + 2 * e.activations.elements() * 4);
  measure(state, bytes, [&] { embedding_backward(e.tokens, e.positions, e.activations, e.ids); });
}
BENCHMARK(BM_EmbeddingBackward)->Arg(0)->Arg(1)->UseRealTime();

void BM_Adamw(benchmark::State& state) {
  Workspace space;
  const DType dtype = dtype_of_argument(state);
  const View master = space.tensor(DType::f32, {kParameters});
  const View m = space.tensor(DType::f32, {kParameters}),
             v = space.tensor(DType::f32, {kParameters});
  const View grad = space.tensor(DType::f32, {kParameters});
  const View weight = dtype == DType::f32 ? master : space.tensor(dtype, {kParameters});
  zero(m), zero(v);
  AdamwOptions options{.lr = 1e-4, .weight_decay = 0.1};
  const int64_t bytes = 7 * master.bytes() + (dtype == DType::f32 ? 0 : weight.bytes());
  measure(state, bytes, [&] {
    adamw(weight, master, m, v, grad, options);
    ++options.step;
  });
}
BENCHMARK(BM_Adamw)->Arg(0)->Arg(1)->UseRealTime();

void BM_SumOfSquares(benchmark::State& state) {
  Workspace space;
  const View x = space.tensor(dtype_of_argument(state), {kParameters});
  measure(state, x.bytes(), [&] { benchmark::DoNotOptimize(sum_of_squares(x)); });
}
BENCHMARK(BM_SumOfSquares)->Arg(0)->Arg(1)->UseRealTime();

void BM_AllFinite(benchmark::State& state) {
  Workspace space;
  const View x = space.tensor(dtype_of_argument(state), {kParameters});
  measure(state, x.bytes(), [&] { benchmark::DoNotOptimize(all_finite(x)); });
}
BENCHMARK(BM_AllFinite)->Arg(0)->Arg(1)->UseRealTime();

/// One thread by its contract. Arguments: dtype, number of sources.
void BM_ReduceSum(benchmark::State& state) {
  Workspace space;
  const DType dtype = dtype_of_argument(state);
  const int64_t n = int64_t{1} << 22;
  const View out = space.tensor(dtype, {n});
  std::vector<const void*> sources;
  for (int64_t s = 0; s < state.range(1); ++s) sources.push_back(space.tensor(dtype, {n}).data);
  measure(state, (state.range(1) + 1) * out.bytes(),
          [&] { reduce(out.data, sources, n, dtype, ReduceOp::sum); });
}
BENCHMARK(BM_ReduceSum)->ArgsProduct({{0, 1}, {2, 3, 4, 8}})->UseRealTime();

void BM_ReduceCopyOnOneThread(benchmark::State& state) {
  Workspace space;
  const int64_t n = int64_t{1} << 22;
  const View x = space.tensor(DType::f32, {n}), y = space.tensor(DType::f32, {n});
  measure(state, 2 * x.bytes(), [&] {
    std::memcpy(y.data, x.data, static_cast<size_t>(x.bytes()));
    benchmark::ClobberMemory();
  });
}
BENCHMARK(BM_ReduceCopyOnOneThread)->UseRealTime();

void BM_Dropout(benchmark::State& state) {
  Workspace space;
  const DType dtype = dtype_of_argument(state);
  const View x = space.tensor(dtype, {4, 256 * kWidth});
  const View samples = space.tensor(DType::i64, {4});
  std::iota(samples.as<int64_t>(), samples.as<int64_t>() + 4, int64_t{100});
  const DropoutKey key{.p = 0.1f, .key = 1, .step = 2, .place = 3};
  measure(state, 2 * x.bytes(), [&] { dropout_forward(x, x, samples, key); });
}
BENCHMARK(BM_Dropout)->Arg(0)->Arg(1)->UseRealTime();

void BM_FillNormal(benchmark::State& state) {
  Workspace space;
  const View y = space.tensor(DType::f32, {kParameters});
  measure(state, y.bytes(), [&] { fill_normal(y, 1, 2, 0, 0.02f); });
}
BENCHMARK(BM_FillNormal)->UseRealTime();

}  // namespace
}  // namespace tessera::kernels
