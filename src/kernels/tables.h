#pragma once

#include <cstdint>

#include "core/dtype.h"
#include "kernels/ref/scalar.h"

// What an instruction set offers for an operation: a table of functions, filled by NAME_avx2.cpp
// and NAME_avx512.cpp from one template, and by the reference. The functions are serial, on plain
// pointers, outputs before inputs before sizes; threads and checks are the dispatcher's matter.

namespace tessera::kernels {

using core::bf16;

struct AdamwScalars;

/// n elements; see elementwise.h.
template <class T>
struct ElementwiseTable {
  void (*add)(T* y, const T* a, const T* b, int64_t n);
  void (*gelu_forward)(T* y, const T* x, int64_t n);
  void (*gelu_backward)(T* dx, const T* dy, const T* x, int64_t n);
};

/// Between two element types: y = x, and y += x.
template <class To, class From>
struct ConversionTable {
  void (*cast)(To* y, const From* x, int64_t n);
  void (*accumulate)(To* y, const From* x, int64_t n);
};

/// N rows of width C; see layernorm.h. backward_weight adds to sums in the compute type.
template <class T>
struct LayernormTable {
  using F = Compute<T>;
  void (*forward)(T* y, F* mean, F* rstd, const T* x, const T* weight, const T* bias, int64_t N,
                  int64_t C, float eps);
  void (*backward_input)(T* dx, const T* dresidual, const T* dy, const T* x, const T* weight,
                         const F* mean, const F* rstd, int64_t N, int64_t C);
  void (*backward_weight)(F* dweight, F* dbias, const T* dy, const T* x, const F* mean,
                          const F* rstd, int64_t N, int64_t C);
};

/// N rows of width C; see rmsnorm.h. backward_weight adds to sums in the compute type.
template <class T>
struct RmsnormTable {
  using F = Compute<T>;
  void (*forward)(T* y, F* rstd, const T* x, const T* weight, int64_t N, int64_t C, float eps);
  void (*backward_input)(T* dx, const T* dresidual, const T* dy, const T* x, const T* weight,
                         const F* rstd, int64_t N, int64_t C);
  void (*backward_weight)(F* dweight, const T* dy, const T* x, const F* rstd, int64_t N, int64_t C);
};

/// The heads of one token, `half` pairs each, next to each other; see rope.h.
template <class T>
struct RopeTable {
  using Function = void(T* heads, const Compute<T>* cos, const Compute<T>* sin, int64_t num_heads,
                        int64_t half);
  Function *forward, *backward;
};

/// N rows of a gate and an up half, I wide each; see swiglu.h.
template <class T>
struct SwigluTable {
  void (*forward)(T* y, const T* gate_up, int64_t N, int64_t I);
  void (*backward)(T* dgate_up, const T* dy, const T* gate_up, int64_t N, int64_t I);
};

template <class Weight, class Grad>
struct AdamwTable {
  void (*step)(Weight* weight, float* master, float* m, float* v, const Grad* grad, int64_t n,
               const AdamwScalars& scalars);
};

template <class T>
struct NormTable {
  double (*sum_of_squares)(const T* x, int64_t n);
};

/// One function for each ReduceOp, in its order: S sources of n elements.
template <class T>
struct ReduceTable {
  using Function = void(T* out, const T* const* sources, int64_t S, int64_t n);
  Function *sum, *average, *max, *min;
};

// Each NAME_ISA<...>() is instantiated for fp32 and bf16 in simd/NAME_ISA.cpp, and nowhere else.

template <class T>
ElementwiseTable<T> elementwise_avx2();
template <class T>
ElementwiseTable<T> elementwise_avx512();

template <class To, class From>
ConversionTable<To, From> conversion_avx2();
template <class To, class From>
ConversionTable<To, From> conversion_avx512();

template <class T>
LayernormTable<T> layernorm_avx2();
template <class T>
LayernormTable<T> layernorm_avx512();

template <class T>
RmsnormTable<T> rmsnorm_avx2();
template <class T>
RmsnormTable<T> rmsnorm_avx512();

template <class T>
RopeTable<T> rope_avx2();
template <class T>
RopeTable<T> rope_avx512();

template <class T>
SwigluTable<T> swiglu_avx2();
template <class T>
SwigluTable<T> swiglu_avx512();

template <class Weight, class Grad>
AdamwTable<Weight, Grad> adamw_avx2();
template <class Weight, class Grad>
AdamwTable<Weight, Grad> adamw_avx512();

template <class T>
NormTable<T> norm_avx2();
template <class T>
NormTable<T> norm_avx512();

template <class T>
ReduceTable<T> reduce_avx2();
template <class T>
ReduceTable<T> reduce_avx512();

}  // namespace tessera::kernels
