#pragma once

#include "kernels/simd/row_kernels.h"

namespace tessera::kernels {

/// The serial kernel of column sums for elements of T (fp64, fp32, bf16), by the calling thread's
/// isa().
template <class T>
simd::ColumnSums<T>* choose_column_sums();
template <>
simd::ColumnSums<double>* choose_column_sums<double>();
template <>
simd::ColumnSums<float>* choose_column_sums<float>();
template <>
simd::ColumnSums<core::bf16>* choose_column_sums<core::bf16>();

}  // namespace tessera::kernels
