#include "kernels/embedding.h"

#include <algorithm>

#include "kernels/device.h"
#include "kernels/element_type.h"
#include "kernels/elementwise_tables.h"
#include "kernels/parallel.h"

namespace tessera::kernels {

namespace {

// Narrower than this a stripe of a row is not worth a visit.
constexpr int64_t kStripe = 64;

/// dy into a table of weight gradients. A row of the table may be hit many times, so threads share
/// out columns, not tokens: each adds its stripe of every token in the order (b, t). A row below 0
/// is none.
template <class D, class T, class RowOf>
void scatter_rows(D* table, const T* dy, int64_t rows, int64_t C, const RowOf& row_of) {
  const auto kernel = conversions<D, T>();
  const int64_t stripes = std::clamp<int64_t>(C / kStripe, 1, num_threads());
  const int64_t width = (C + stripes - 1) / stripes;
  parallel_blocks(C, width, rows * C, [=](int64_t c, int64_t count) {
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t to = row_of(row);
      if (to >= 0) kernel.accumulate(table + to * C + c, dy + row * C + c, count);
    }
  });
}

template <class D, class T>
void backward(View dtokens, View dpositions, ConstView dy, const int32_t* ids, int64_t first_id) {
  const int64_t B = dy.shape[0], T_ = dy.shape[1], C = dy.shape[2];
  const T* gradient = dy.as<T>();
  const int64_t V = dtokens.shape[0];
  scatter_rows(dtokens.as<D>(), gradient, B * T_, C,
               [=](int64_t row) { return embedding_row(ids[row], first_id, V); });
  if (dpositions) {
    scatter_rows(dpositions.as<D>(), gradient, B * T_, C, [=](int64_t row) { return row % T_; });
  }
}

}  // namespace

void embedding_forward(View y, ConstView ids, ConstView tokens_weight, ConstView positions_weight,
                       int64_t first_id) {
  CHECK(y.shape.dims() == 3 && ids.elements() == y.shape.rows());
  const int64_t T = y.shape[1], C = y.shape[2], rows = y.shape.rows();
  const int64_t V = tokens_weight.shape[0];
  CHECK(tokens_weight.shape.last() == C);
  CHECK(!positions_weight ||
        (positions_weight.shape.last() == C && positions_weight.shape[0] >= T));
  const int32_t* id = ids.as<int32_t>();
  with_float_type(y.dtype, [&](auto tag) {
    using Element = typename decltype(tag)::type;
    Element* out = y.as<Element>();
    const Element* tokens = tokens_weight.as<Element>();
    const Element* positions = positions_weight ? positions_weight.as<Element>() : nullptr;
    const auto add = elementwise<Element>().add;
    const auto copy = conversions<Element, Element>().cast;
    parallel_for(rows, rows * C, [=](int64_t row) {
      const int64_t from = embedding_row(id[row], first_id, V);
      const Element* position = positions == nullptr ? nullptr : positions + (row % T) * C;
      if (from < 0 && position == nullptr) {
        std::fill_n(out + row * C, C, Element{});
      } else if (from < 0 || position == nullptr) {
        copy(out + row * C, from < 0 ? position : tokens + from * C, C);
      } else {
        add(out + row * C, tokens + from * C, position, C);
      }
    });
  });
}

void embedding_backward(View dtokens_weight, View dpositions_weight, ConstView dy, ConstView ids,
                        int64_t first_id) {
  CHECK(dy.shape.dims() == 3 && ids.elements() == dy.shape.rows());
  const int64_t T = dy.shape[1], C = dy.shape[2];
  CHECK(dtokens_weight.shape.last() == C);
  CHECK(!dpositions_weight ||
        (dpositions_weight.shape.last() == C && dpositions_weight.shape[0] >= T &&
         dpositions_weight.dtype == dtokens_weight.dtype));
  const int32_t* id = ids.as<int32_t>();
  with_float_type(dy.dtype, [&](auto tag) {
    using Element = typename decltype(tag)::type;
    if (dtokens_weight.dtype == dy.dtype) {
      backward<Element, Element>(dtokens_weight, dpositions_weight, dy, id, first_id);
    } else {
      backward<Compute<Element>, Element>(dtokens_weight, dpositions_weight, dy, id, first_id);
    }
  });
}

}  // namespace tessera::kernels
