#include "parallel/tensor/row_linear.h"

#include "core/fault.h"

namespace tessera::parallel {

namespace {

model::LinearSpec without_bias(model::LinearSpec spec) {
  spec.bias.reset();
  return spec;
}

}  // namespace

RowLinear::RowLinear(const model::Parameters& parameters, const model::LinearSpec& spec,
                     comm::Communicator& group)
    : stream_(group),
      local_(parameters, spec),
      summand_(parameters, without_bias(spec)),
      trains_(parameters.table().find(spec.unit, spec.weight)->trainable) {}

void RowLinear::forward(model::Pass& pass, View y, ConstView x) {
  const bool biased = stream_.rank() == 0 || TESSERA_FAULT("tp_bias_added_by_every_rank");
  model::DenseLinear& product = biased ? local_ : summand_;
  stream_.sum(pass, y, [&](View summand) { product.forward(pass, summand, x); });
}

void RowLinear::backward_input(model::Pass& pass, View dx, ConstView dy) {
  const core::Arena::Scope scope(pass.scratch);
  local_.backward_input(pass, dx, stream_.whole(pass, dy));
}

void RowLinear::backward_weight(model::Pass& pass, ConstView dy, ConstView x) {
  if (!trains_) return;
  const core::Arena::Scope scope(pass.scratch);
  local_.backward_weight(pass, stream_.whole(pass, dy), x);
}

}  // namespace tessera::parallel
