#include "model/lora.h"

#include <algorithm>

#include "kernels/columns.h"
#include "kernels/elementwise.h"

namespace tessera::model {

namespace {

/// part [N, w] = columns [first, first + w) of whole [N, W].
void copy_part(View part, ConstView whole, int64_t first) {
  const int64_t rows = part.shape.rows(), width = part.shape.last();
  const ConstView from = whole.slice(first, {whole.elements() - first});
  kernels::copy_rows(part, width, from, whole.shape.last(), rows, width);
}

/// Rows of what is r wide, between x and y.
int64_t hidden_rows(ConstView x, ConstView y) {
  return std::min(x.shape.rows(), y.shape.rows());
}

}  // namespace

void LoraLinear::forward(Pass& pass, View y, ConstView x) {
  base_->forward(pass, y, x);
  for (const Adapter& adapter : adapters_) {
    const core::Arena::Scope scope(pass.scratch);
    const View hidden = pass.scratch.allocate(x.dtype, {hidden_rows(x, y), adapter.a->out_width()});
    const View part = pass.scratch.allocate(x.dtype, {y.shape.rows(), adapter.b->out_width()});
    adapter.a->forward(pass, hidden, x);
    kernels::scale(hidden, scale_);
    adapter.b->forward(pass, part, hidden);
    kernels::add_columns(y, adapter.first, part);
  }
}

void LoraLinear::backward_input(Pass& pass, View dx, ConstView dy) {
  base_->backward_input(pass, dx, dy);
  for (const Adapter& adapter : adapters_) {
    const core::Arena::Scope scope(pass.scratch);
    const View dpart = pass.scratch.allocate(dy.dtype, {dy.shape.rows(), adapter.b->out_width()});
    const View dhidden =
        pass.scratch.allocate(dy.dtype, {hidden_rows(dx, dy), adapter.a->out_width()});
    const View through = pass.scratch.allocate(dy.dtype, {dx.shape.rows(), in_width()});
    copy_part(dpart, dy, adapter.first);
    adapter.b->backward_input(pass, dhidden, dpart);
    kernels::scale(dhidden, scale_);
    adapter.a->backward_input(pass, through, dhidden);
    kernels::add_columns(dx, 0, through);
  }
}

void LoraLinear::backward_weight(Pass& pass, ConstView dy, ConstView x) {
  base_->backward_weight(pass, dy, x);  // nothing, where the base is frozen
  for (const Adapter& adapter : adapters_) {
    const core::Arena::Scope scope(pass.scratch);
    const View dpart = pass.scratch.allocate(dy.dtype, {dy.shape.rows(), adapter.b->out_width()});
    const View hidden =
        pass.scratch.allocate(x.dtype, {hidden_rows(x, dy), adapter.a->out_width()});
    const View dhidden = pass.scratch.allocate(dy.dtype, hidden.shape);
    copy_part(dpart, dy, adapter.first);
    adapter.a->forward(pass, hidden, x);
    kernels::scale(hidden, scale_);
    adapter.b->backward_weight(pass, dpart, hidden);
    adapter.b->backward_input(pass, dhidden, dpart);
    kernels::scale(dhidden, scale_);
    adapter.a->backward_weight(pass, dhidden, x);
  }
}

std::unique_ptr<Linear> LoraFactory::linear(const Parameters& parameters,
                                            const LinearSpec& spec) const {
  using account::Role;
  const account::ParameterTable& table = parameters.table();
  std::vector<LoraLinear::Adapter> adapters;
  int64_t first = 0;
  for (int i = 0; i < spec.fused; ++i) {
    const auto weight = static_cast<Role>(static_cast<int>(spec.weight) + i);
    const int64_t width = table.find(spec.unit, weight)->shape[0];
    const std::optional<account::AdapterRoles> roles = account::adapter_of(weight);
    if (roles && table.find(spec.unit, roles->a) != nullptr) {
      // What cuts the product's inputs cuts A's, what cuts its outputs cuts B's. Neither has a
      // bias.
      const Split cut_a = spec.split == Split::inputs ? Split::inputs : Split::none;
      const Split cut_b = spec.split == Split::outputs ? Split::outputs : Split::none;
      adapters.push_back({base_.linear(parameters, {spec.unit, roles->a, {}, 1, cut_a}),
                          base_.linear(parameters, {spec.unit, roles->b, {}, 1, cut_b}), first});
    }
    first += width;
  }
  std::unique_ptr<Linear> base = base_.linear(parameters, spec);
  if (adapters.empty()) return base;
  return std::make_unique<LoraLinear>(std::move(base), std::move(adapters), scale_);
}

}  // namespace tessera::model
