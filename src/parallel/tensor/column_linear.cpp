#include "parallel/tensor/column_linear.h"

namespace tessera::parallel {

ColumnLinear::ColumnLinear(const model::Parameters& parameters, const model::LinearSpec& spec,
                           comm::Communicator& group)
    : stream_(group),
      local_(parameters, spec),
      trains_(parameters.table().find(spec.unit, spec.weight)->trainable) {}

void ColumnLinear::forward(model::Pass& pass, View y, ConstView x) {
  const core::Arena::Scope scope(pass.scratch);
  local_.forward(pass, y, stream_.whole(pass, x));
}

void ColumnLinear::backward_input(model::Pass& pass, View dx, ConstView dy) {
  stream_.sum(pass, dx, [&](View summand) { local_.backward_input(pass, summand, dy); });
}

void ColumnLinear::backward_weight(model::Pass& pass, ConstView dy, ConstView x) {
  if (!trains_) return;
  const core::Arena::Scope scope(pass.scratch);
  local_.backward_weight(pass, dy, stream_.whole(pass, x));
}

}  // namespace tessera::parallel
