#include "model/dropout_site.h"

#include "core/fault.h"

namespace tessera::model {

namespace {

/// Of the elements of a whole sequence of the stream, the first that this rank has.
int64_t first_element(const Pass& pass, ConstView x) {
  if (TESSERA_FAULT("sp_dropout_by_local_position")) return 0;
  return pass.stream_first() * x.shape.last();
}

}  // namespace

void drop_out(const Pass& pass, View y, ConstView x, const kernels::DropoutKey& key) {
  if (key.p <= 0) return;
  kernels::dropout_forward(y, x, pass.batch.samples, key, first_element(pass, x));
}

void drop_out_backward(const Pass& pass, View dx, ConstView dy, const kernels::DropoutKey& key) {
  if (key.p <= 0) return;
  kernels::dropout_backward(dx, dy, pass.batch.samples, key, first_element(pass, dy));
}

}  // namespace tessera::model
