#pragma once

// Matrices in fp64 for the demonstrations of exactness (train/exact.h), multiplied and normalised
// by the kernels of training. Shapes that do not fit are bugs of the caller's (CHECK in kernels).

#include <cstdint>
#include <utility>
#include <vector>

#include "comm/partition.h"
#include "core/view.h"

namespace tessera::train {

struct Matrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<double> values;  ///< row by row

  Matrix(int64_t m, int64_t n) : rows(m), columns(n), values(static_cast<size_t>(m * n)) {}
  Matrix(int64_t m, int64_t n, std::vector<double> given)
      : rows(m), columns(n), values(std::move(given)) {}
  core::View view() { return {values.data(), core::DType::f64, {rows, columns}}; }
  core::ConstView view() const { return {values.data(), core::DType::f64, {rows, columns}}; }
  double& at(int64_t i, int64_t j) { return values[static_cast<size_t>(i * columns + j)]; }
  double at(int64_t i, int64_t j) const { return values[static_cast<size_t>(i * columns + j)]; }
};

/// Uniform in [-1, 1), by exact arithmetic alone, so that every machine draws the same; with all 53
/// bits of a double: products of short numbers would be exact, and their sums in any order equal.
/// `which` tells the matrices of a seed apart.
Matrix drawn(uint64_t seed, uint64_t which, int64_t rows, int64_t columns);

Matrix rows_of(const Matrix& m, comm::Range range);
Matrix columns_of(const Matrix& m, comm::Range range);

/// a b, and aᵀ b: kernels::matmul.
Matrix product(const Matrix& a, const Matrix& b);
Matrix transposed_product(const Matrix& a, const Matrix& b);
/// Element by element: kernels::gelu_forward.
Matrix gelu(const Matrix& x);

inline constexpr float kNormEps = 1e-5f;
/// Row by row with weights of one: kernels::rmsnorm_forward.
Matrix rms_norm(const Matrix& x);

Matrix scaled(Matrix m, double factor);
Matrix magnitudes(Matrix m);
/// The largest magnitude.
double largest(const Matrix& m);
/// The largest absolute difference; not a number where an element of them is none.
double difference(const Matrix& a, const Matrix& b);

}  // namespace tessera::train
