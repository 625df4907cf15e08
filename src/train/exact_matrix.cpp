#include "train/exact_matrix.h"

#include <algorithm>
#include <cmath>

#include "core/rng.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"
#include "kernels/rmsnorm.h"

namespace tessera::train {

Matrix drawn(uint64_t seed, uint64_t which, int64_t rows, int64_t columns) {
  const uint64_t key = core::stream_key(seed, core::Stream::init);
  Matrix result(rows, columns);
  for (size_t i = 0; i < result.values.size(); ++i) {
    const auto draw = core::philox(key, which, i);
    const uint64_t bits = (uint64_t{draw[0]} << 21) ^ (draw[1] >> 11);
    result.values[i] = 2.0 * (static_cast<double>(bits) * 0x1p-53) - 1.0;
  }
  return result;
}

Matrix rows_of(const Matrix& m, comm::Range range) {
  const auto first = m.values.begin() + range.begin * m.columns;
  return {range.count, m.columns, {first, first + range.count * m.columns}};
}

Matrix columns_of(const Matrix& m, comm::Range range) {
  Matrix part(m.rows, range.count);
  for (int64_t i = 0; i < m.rows; ++i) {
    for (int64_t j = 0; j < range.count; ++j) part.at(i, j) = m.at(i, range.begin + j);
  }
  return part;
}

Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.columns);
  kernels::matmul(c.view(), a.view(), b.view());
  return c;
}

Matrix transposed_product(const Matrix& a, const Matrix& b) {
  Matrix c(a.columns, b.columns);
  kernels::MatmulOptions options;
  options.transpose_a = true;
  kernels::matmul(c.view(), a.view(), b.view(), options);
  return c;
}

Matrix gelu(const Matrix& x) {
  Matrix y(x.rows, x.columns);
  kernels::gelu_forward(y.view(), x.view());
  return y;
}

Matrix rms_norm(const Matrix& x) {
  Matrix y(x.rows, x.columns);
  std::vector<double> rstd(static_cast<size_t>(x.rows));
  const std::vector<double> ones(static_cast<size_t>(x.columns), 1.0);
  kernels::rmsnorm_forward(y.view(), {rstd.data(), core::DType::f64, {x.rows}}, x.view(),
                           {ones.data(), core::DType::f64, {x.columns}}, kNormEps);
  return y;
}

Matrix scaled(Matrix m, double factor) {
  for (double& value : m.values) value *= factor;
  return m;
}

Matrix magnitudes(Matrix m) {
  for (double& value : m.values) value = std::abs(value);
  return m;
}

double largest(const Matrix& m) {
  double most = 0;
  for (const double value : m.values) most = std::max(most, std::abs(value));
  return most;
}

double difference(const Matrix& a, const Matrix& b) {
  CHECK(a.rows == b.rows && a.columns == b.columns);
  double most = 0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    const double here = std::abs(a.values[i] - b.values[i]);
    if (!(here <= most)) most = here;
    if (std::isnan(most)) break;
  }
  return most;
}

}  // namespace tessera::train
