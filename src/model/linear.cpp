#include "model/linear.h"

#include "core/fault.h"
#include "kernels/elementwise.h"
#include "model/products.h"

namespace tessera::model {

DenseLinear::DenseLinear(const Parameters& parameters, const LinearSpec& spec)
    : parameters_(parameters), spec_(spec) {
  const account::Parameter* first = parameters.table().find(spec.unit, spec.weight);
  CHECK(first != nullptr, "a product without a weight");
  in_width_ = first->shape[1];
  for (int i = 0; i < spec.fused; ++i) {
    const auto role = static_cast<account::Role>(static_cast<int>(spec.weight) + i);
    const account::Parameter* part = parameters.table().find(spec.unit, role);
    CHECK(part != nullptr && part->shape[1] == in_width_, "fused products of unequal inputs");
    out_width_ += part->shape[0];
  }
}

void DenseLinear::forward(Pass& pass, View y, ConstView x) {
  kernels::MatmulOptions options;
  options.transpose_b = true;
  options.bias = bias().value;
  multiply(pass, y, x, weight().value, options);
}

void DenseLinear::backward_input(Pass& pass, View dx, ConstView dy) {
  multiply(pass, dx, dy, weight().value);
}

void DenseLinear::backward_weight(Pass& pass, ConstView dy, ConstView x) {
  add_weight_gradient(pass, weight().grad, dy, x);
  const View dbias = bias().grad;
  if (dbias && TESSERA_FAULT("model_accumulate_overwrites")) kernels::zero(dbias);
  add_bias_gradient(pass, dbias, dy);
}

}  // namespace tessera::model
