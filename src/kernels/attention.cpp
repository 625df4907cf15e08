#include "kernels/attention.h"

#include <omp.h>

#include <algorithm>

#include "kernels/attention_call.h"
#include "kernels/device.h"
#include "kernels/element_type.h"
#include "kernels/parallel.h"
#include "kernels/ref/attention.h"
#include "kernels/ref/dropout.h"
#include "kernels/simd/attention.h"

// One task is the query heads of one key-value head in one sequence; one thread does all of it, so
// results do not depend on the number of threads. There are B · G tasks of equal shape, which
// documents make unequal in work: threads take the next when they are done.

namespace tessera::kernels {
namespace {

using core::bf16;
using core::DType;

/// The two directions of one implementation.
template <class T>
struct Direction {
  AttentionTask<T>* forward;
  AttentionTask<T>* backward;
};

template <class T>
Direction<T> reference() {
  return {ref::attention_forward<T>, ref::attention_backward<T>};
}

/// The ordered list, by type: the first that this processor has.
Direction<double> choose_attention(double) {
  return reference<double>();
}

Direction<float> choose_attention(float) {
  if (isa() == Isa::avx512) {
    return {simd::avx512::attention_forward_f32, simd::avx512::attention_backward_f32};
  }
  if (isa() == Isa::avx2) {
    return {simd::avx2::attention_forward_f32, simd::avx2::attention_backward_f32};
  }
  return reference<float>();
}

Direction<bf16> choose_attention(bf16) {
  if (has_native_bf16()) {
    return {simd::avx512bf16::attention_forward_bf16, simd::avx512bf16::attention_backward_bf16};
  }
  if (isa() == Isa::avx512) {
    return {simd::avx512::attention_forward_bf16, simd::avx512::attention_backward_bf16};
  }
  if (isa() == Isa::avx2) {
    return {simd::avx2::attention_forward_bf16, simd::avx2::attention_backward_bf16};
  }
  return reference<bf16>();
}

void check_shape(const AttentionShape& shape) {
  CHECK(shape.batch > 0 && shape.seq_len > 0 && shape.num_heads > 0 && shape.num_kv_heads > 0 &&
            shape.head_dim > 0,
        "attention: an empty shape");
  CHECK(shape.num_heads % shape.num_kv_heads == 0,
        "attention: query heads do not divide among the key-value heads");
  CHECK(shape.scale > 0, "attention: the scale is not positive");
  CHECK(shape.seq_len < (1 << 24) && shape.first_head >= 0 &&
            shape.first_head + shape.num_heads < (1 << 16),
        "attention: beyond what the dropout's counter can number");
}

int64_t qkv_elements(const AttentionShape& shape) {
  return shape.batch * shape.seq_len * (shape.num_heads + 2 * shape.num_kv_heads) * shape.head_dim;
}

int64_t out_elements(const AttentionShape& shape) {
  return shape.batch * shape.seq_len * shape.num_heads * shape.head_dim;
}

const int32_t* checked_starts(ConstView doc_start, const AttentionShape& shape) {
  if (!doc_start) return nullptr;
  CHECK(doc_start.elements() == shape.batch * shape.seq_len, "attention: doc_start's shape");
  const auto* starts = doc_start.as<int32_t>();
  for (int64_t i = 0; i < doc_start.elements(); ++i) {
    CHECK(starts[i] >= 0 && starts[i] <= i % shape.seq_len,
          "attention: a document starts after its token");
  }
  return starts;
}

AttentionDropout settle(const DropoutKey& dropout, ConstView samples, int64_t batch) {
  AttentionDropout result;
  if (dropout.p <= 0) return result;
  CHECK(dropout.p < 1, "attention: dropout of everything");
  CHECK(samples.elements() == batch, "attention: a sample number for each sequence");
  result.on = true;
  result.key = dropout_call_key(dropout);
  result.threshold = dropout_threshold(dropout.p);
  result.keep_scale = 1 / (1 - dropout.p);
  result.samples = samples.as<int64_t>();
  return result;
}

template <class T>
void run_tasks(const AttentionCall<T>& call, AttentionTask<T>* task, View scratch) {
  const AttentionShape& shape = call.shape;
  const int64_t each = attention_scratch_bytes(shape, 1);
  CHECK(scratch.bytes() >= each, "attention: less scratch than attention_scratch_bytes says");
  auto* memory = static_cast<std::byte*>(scratch.data);
  const int64_t tasks = shape.batch * shape.num_kv_heads;
#ifdef TESSERA_SANITIZE_thread
  for (int64_t i = 0; i < tasks; ++i) {
    task(call, i / shape.num_kv_heads, i % shape.num_kv_heads, memory);
  }
#else
  const double work = static_cast<double>(shape.batch * shape.seq_len) *
                      static_cast<double>(shape.num_heads * shape.head_dim) *
                      static_cast<double>(shape.seq_len);
  const int64_t room = work < kParallelFrom ? 1 : scratch.bytes() / each;
  const auto threads =
      static_cast<int>(std::min({static_cast<int64_t>(num_threads()), room, tasks}));
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (int64_t i = 0; i < tasks; ++i) {
    task(call, i / shape.num_kv_heads, i % shape.num_kv_heads,
         memory + omp_get_thread_num() * each);
  }
#endif
}

}  // namespace

int64_t attention_scratch_bytes(const AttentionShape& shape, int num_threads) {
  return num_threads * simd::attention_thread_bytes(shape.seq_len, shape.head_dim);
}

void attention_forward(View out, View lse, ConstView qkv, ConstView doc_start, ConstView samples,
                       const DropoutKey& dropout, View scratch, const AttentionShape& shape) {
  check_shape(shape);
  CHECK(qkv.elements() == qkv_elements(shape) && out.elements() == out_elements(shape) &&
            lse.elements() == shape.batch * shape.num_heads * shape.seq_len,
        "attention: operands do not fit the shape");
  with_float_type(qkv.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    AttentionCall<T> call;
    call.shape = shape;
    call.dropout = settle(dropout, samples, shape.batch);
    call.qkv = qkv.as<T>();
    call.doc_start = checked_starts(doc_start, shape);
    call.out = out.as<T>();
    call.lse = lse.as<typename AttentionCall<T>::F>();
    run_tasks(call, choose_attention(T{}).forward, scratch);
  });
}

void attention_backward(View dqkv, ConstView dout, ConstView qkv, ConstView out, ConstView lse,
                        ConstView doc_start, ConstView samples, const DropoutKey& dropout,
                        View scratch, const AttentionShape& shape) {
  check_shape(shape);
  CHECK(qkv.elements() == qkv_elements(shape) && dqkv.elements() == qkv_elements(shape) &&
            out.elements() == out_elements(shape) && dout.elements() == out_elements(shape) &&
            lse.elements() == shape.batch * shape.num_heads * shape.seq_len,
        "attention: operands do not fit the shape");
  with_float_type(qkv.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using F = typename AttentionCall<T>::F;
    AttentionCall<T> call;
    call.shape = shape;
    call.dropout = settle(dropout, samples, shape.batch);
    call.qkv = qkv.as<T>();
    call.doc_start = checked_starts(doc_start, shape);
    call.out = const_cast<T*>(out.as<T>());  // read only
    call.lse = const_cast<F*>(lse.as<F>());
    call.dout = dout.as<T>();
    call.dqkv = dqkv.as<T>();
    run_tasks(call, choose_attention(T{}).backward, scratch);
  });
}

}  // namespace tessera::kernels
