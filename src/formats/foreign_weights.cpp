#include "formats/foreign_weights.h"

#include <algorithm>
#include <cstring>

#include "core/error.h"

namespace tessera::formats {
namespace {

template <class T>
T load(const char* data) {
  T value;
  std::memcpy(&value, data, sizeof value);
  return value;
}

/// IEEE binary16.
float widened(uint16_t half) {
  const uint32_t sign = uint32_t{half} >> 15 << 31;
  const uint32_t exponent = half >> 10 & 31;
  const uint32_t mantissa = half & 1023;
  if (exponent == 0) {  // zero, or a multiple of 2^-24
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const uint32_t wide = exponent == 31 ? 255 : exponent + 127 - 15;
  return __builtin_bit_cast(float, sign | wide << 23 | mantissa << 13);
}

struct FromF64 {
  static constexpr int64_t kBytes = 8;
  static float get(const char* data) { return static_cast<float>(load<double>(data)); }
};
struct FromF32 {
  static constexpr int64_t kBytes = 4;
  static float get(const char* data) { return load<float>(data); }
};
struct FromF16 {
  static constexpr int64_t kBytes = 2;
  static float get(const char* data) { return widened(load<uint16_t>(data)); }
};
struct FromBf16 {
  static constexpr int64_t kBytes = 2;
  static float get(const char* data) {
    core::bf16 value;
    value.bits = load<uint16_t>(data);
    return static_cast<float>(value);
  }
};

/// In tiles, so that a transposed block is read by whole cache lines.
template <class From, class To>
void copy(const WeightBlock& block, To* out, int64_t rows, int64_t columns) {
  constexpr int64_t kTile = 64;
  const int64_t row_bytes = block.row_stride * From::kBytes;
  const int64_t column_bytes = block.column_stride * From::kBytes;
  const int64_t tile = block.column_stride == 1 ? columns : kTile;
  for (int64_t r0 = 0; r0 < rows; r0 += kTile) {
    for (int64_t c0 = 0; c0 < columns; c0 += tile) {
      for (int64_t r = r0; r < std::min(rows, r0 + kTile); ++r) {
        const char* from = block.data + r * row_bytes + c0 * column_bytes;
        To* to = out + r * columns + c0;
        const int64_t count = std::min(columns, c0 + tile) - c0;
        for (int64_t c = 0; c < count; ++c) to[c] = To(From::get(from + c * column_bytes));
      }
    }
  }
}

template <class To>
void copy_as(const WeightBlock& block, core::View out) {
  const int64_t rows = out.shape.rows();
  const int64_t columns = out.shape.last();
  switch (block.type) {
    case WeightType::f64:
      return copy<FromF64>(block, out.as<To>(), rows, columns);
    case WeightType::f32:
      return copy<FromF32>(block, out.as<To>(), rows, columns);
    case WeightType::f16:
      return copy<FromF16>(block, out.as<To>(), rows, columns);
    case WeightType::bf16:
      return copy<FromBf16>(block, out.as<To>(), rows, columns);
  }
}

}  // namespace

void read_block(const WeightBlock& block, core::View out) {
  if (out.dtype == core::DType::f32) return copy_as<float>(block, out);
  CHECK(out.dtype == core::DType::bf16, "weights are read as fp32 or bf16");
  copy_as<core::bf16>(block, out);
}

void ForeignWeights::read_from(const account::Parameter& parameter, int64_t first,
                               core::View out) const {
  const auto found = blocks.find(parameter.name);
  CHECK(found != blocks.end(), "a parameter that the files were not opened for");
  CHECK(first >= 0 && first + out.elements() <= parameter.elements());
  // In the file's tensor, of which a vector is one row.
  const bool cuts_rows = parameter.cut == 0 && parameter.shape.dims() > 1;
  const int64_t first_row = cuts_rows ? parameter.begin : 0;
  const int64_t first_column = cuts_rows ? 0 : parameter.begin;
  const int64_t columns = parameter.shape.last();
  const int64_t real = parameter.elements() - parameter.padding * columns;
  const int64_t count = std::clamp<int64_t>(real - first, 0, out.elements());
  if (count < out.elements()) {
    const core::View padding = out.slice(count, {out.elements() - count});
    std::memset(padding.data, 0, static_cast<size_t>(padding.bytes()));
  }
  // The rest of a row, whole rows, the beginning of a row.
  for (int64_t done = 0; done < count;) {
    const int64_t row = (first + done) / columns;
    const int64_t column = (first + done) % columns;
    const int64_t left = count - done;
    const bool whole_rows = column == 0 && left >= columns;
    const int64_t width = whole_rows ? columns : std::min(columns - column, left);
    const int64_t rows = whole_rows ? left / columns : 1;
    WeightBlock block = found->second;
    block.data +=
        ((first_row + row) * block.row_stride + (first_column + column) * block.column_stride) *
        size_of(block.type);
    read_block(block, out.slice(done, {rows, width}));
    done += rows * width;
  }
}

}  // namespace tessera::formats
