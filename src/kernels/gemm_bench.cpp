#include "kernels/gemm_bench.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/error.h"
#include "core/memory.h"
#include "core/rng.h"
#include "kernels/device.h"
#include "kernels/matmul.h"

namespace tessera::kernels {
namespace {

using core::bf16;
using core::DType;

void add_linear(std::vector<GemmShape>& shapes, const std::string& name, int64_t tokens, int64_t in,
                int64_t out, int64_t out_stride, int64_t count) {
  GemmShape forward{name + ", forward", tokens, out, in};
  forward.transpose_b = true;
  forward.ldc = out_stride;
  GemmShape input{name + ", input gradient", tokens, in, out};
  input.lda = out_stride;
  GemmShape weight{name + ", weight gradient", out, in, tokens};
  weight.transpose_a = true;
  weight.accumulate = true;
  weight.lda = out_stride;
  for (GemmShape* shape : {&forward, &input, &weight}) {
    shape->count = count;
    shapes.push_back(*shape);
  }
}

/// The elements that the rows of a stored operand span.
int64_t span(int64_t rows, int64_t columns, int64_t stride) {
  return (rows - 1) * (stride == 0 ? columns : stride) + columns;
}

/// Small whole numbers times a power of two: bf16 holds them, and fp32 their products.
void fill(View x, uint64_t seed) {
  for (int64_t i = 0; i < x.elements(); ++i) {
    const auto draw = core::philox(seed, static_cast<uint64_t>(i / 4), 0)[i % 4];
    const float value = (static_cast<float>(draw % 17) - 8) / 16;
    if (x.dtype == DType::bf16) {
      x.as<bf16>()[i] = bf16(value);
    } else {
      x.as<float>()[i] = value;
    }
  }
}

double element(const View& x, int64_t i) {
  return x.dtype == DType::bf16 ? static_cast<float>(x.as<bf16>()[i]) : x.as<float>()[i];
}

/// One shape's operands in memory of their own.
class Gemm {
 public:
  Gemm(const GemmShape& shape, DType dtype)
      : shape_(shape),
        a_columns_(shape.transpose_a ? shape.m : shape.k),
        b_columns_(shape.transpose_b ? shape.k : shape.n),
        a_(ledger_, core::Category::activations, dtype,
           {span(shape.transpose_a ? shape.k : shape.m, a_columns_, shape.lda)}),
        b_(ledger_, core::Category::activations, dtype,
           {span(shape.transpose_b ? shape.n : shape.k, b_columns_, shape.ldb)}),
        c_(ledger_, core::Category::activations, shape.accumulate ? DType::f32 : dtype,
           {span(shape.m, shape.n, shape.ldc)}) {
    fill(a_.view(), 1);
    fill(b_.view(), 2);
  }

  void run() {
    const GemmShape& s = shape_;
    MatmulOptions options;
    options.transpose_a = s.transpose_a;
    options.transpose_b = s.transpose_b;
    options.accumulate = s.accumulate;
    options.lda = s.lda;
    options.ldb = s.ldb;
    options.ldc = s.ldc;
    const auto matrix = [](const View& x, int64_t rows, int64_t columns) {
      return View{x.data, x.dtype, {rows, columns}};
    };
    matmul(matrix(c_.view(), s.m, s.n), matrix(a_.view(), s.transpose_a ? s.k : s.m, a_columns_),
           matrix(b_.view(), s.transpose_b ? s.n : s.k, b_columns_), options);
  }

  /// After one run on a zeroed result: corners, middles and odd places against fp64.
  void verify() const {
    const GemmShape& s = shape_;
    const int64_t lda = s.lda == 0 ? a_columns_ : s.lda;
    const int64_t ldb = s.ldb == 0 ? b_columns_ : s.ldb;
    const int64_t ldc = s.ldc == 0 ? s.n : s.ldc;
    const View a = a_.view(), b = b_.view(), c = c_.view();
    for (const int64_t i : {int64_t{0}, s.m / 3, s.m - 1}) {
      for (const int64_t j : {int64_t{0}, s.n / 2, s.n - 1}) {
        double expected = 0, size = 0;
        for (int64_t k = 0; k < s.k; ++k) {
          const double term = element(a, s.transpose_a ? k * lda + i : i * lda + k) *
                              element(b, s.transpose_b ? j * ldb + k : k * ldb + j);
          expected += term;
          size += std::abs(term);
        }
        const double rounding = c.dtype == DType::bf16 ? 0x1p-8 : 0x1p-23;
        const double bound =
            static_cast<double>(s.k) * 0x1p-24 * size + rounding * std::abs(expected);
        const double actual = element(c, i * ldc + j);
        if (!(std::abs(actual - expected) <= bound)) {
          throw core::RunError("bench gemm: " + s.name + " is wrong at " + std::to_string(i) +
                               ", " + std::to_string(j) + ": " + std::to_string(actual) +
                               " instead of " + std::to_string(expected));
        }
      }
    }
  }

 private:
  GemmShape shape_;
  int64_t a_columns_, b_columns_;
  core::MemoryLedger ledger_;
  core::Tensor a_, b_, c_;
};

GemmResult measure_one(const GemmShape& shape, DType dtype, int repetitions) {
  Gemm gemm(shape, dtype);
  gemm.run();
  gemm.verify();
  std::vector<double> seconds;
  for (int i = 0; i < repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    gemm.run();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    seconds.push_back(taken.count());
  }
  std::sort(seconds.begin(), seconds.end());
  return {shape, seconds.front(), seconds[seconds.size() / 2]};
}

}  // namespace

std::vector<GemmShape> training_products(const GemmModel& model) {
  CHECK(model.logits_rows > 0 && model.logits_rows <= model.tokens,
        "bench gemm: a chunk of logits has between 1 and all of the tokens");
  std::vector<GemmShape> shapes;
  const int64_t tokens = model.tokens, C = model.hidden_size;
  add_linear(shapes, "attention in", tokens, C, model.qkv_size, 0, model.num_layers);
  add_linear(shapes, "attention out", tokens, model.attention_size, C, 0, model.num_layers);
  const int64_t up_size = model.up_size == 0 ? model.intermediate_size : model.up_size;
  add_linear(shapes, "mlp up", tokens, C, up_size, 0, model.num_layers);
  add_linear(shapes, "mlp down", tokens, model.intermediate_size, C, 0, model.num_layers);
  const int64_t chunks = tokens / model.logits_rows;
  const int64_t rest = tokens % model.logits_rows;
  add_linear(shapes, "logits chunk", model.logits_rows, C, model.vocab_size, model.logits_stride,
             chunks);
  if (rest != 0) {
    add_linear(shapes, "last logits chunk", rest, C, model.vocab_size, model.logits_stride, 1);
  }
  return shapes;
}

std::vector<GemmResult> measure_gemm(const std::vector<GemmShape>& shapes, DType dtype,
                                     const GemmBenchOptions& options) {
  CHECK(dtype == DType::f32 || dtype == DType::bf16, "bench gemm: fp32 or bf16");
  CHECK(options.repetitions >= 1, "bench gemm: at least one repetition");
  const int threads_before = num_threads();
  set_num_threads(options.threads);
  std::vector<GemmResult> results;
  try {
    for (const GemmShape& shape : shapes) {
      results.push_back(measure_one(shape, dtype, options.repetitions));
    }
  } catch (...) {
    set_num_threads(threads_before);
    throw;
  }
  set_num_threads(threads_before);
  return results;
}

double weighted_gflops(const std::vector<GemmResult>& results) {
  double flops = 0, seconds = 0;
  for (const GemmResult& result : results) {
    const auto count = static_cast<double>(result.shape.count);
    flops += count * result.shape.flops();
    seconds += count * result.median_seconds;
  }
  return seconds == 0 ? 0 : flops / seconds * 1e-9;
}

}  // namespace tessera::kernels
