#include "model/parameters.h"

#include <algorithm>

#include "core/rng.h"
#include "kernels/elementwise.h"
#include "kernels/random.h"

namespace tessera::model {

namespace {

/// `shape` at `offset` of a flat buffer; empty where the buffer is.
View part_of(View flat, int64_t offset, core::Shape shape) {
  return flat ? flat.slice(offset, shape) : View{};
}

}  // namespace

Parameters::Parameters(const account::ParameterTable& table)
    : table_(table), units_(table.units.size()) {}

void Parameters::bind_weights(int unit, View frozen, View trained) {
  const auto index = static_cast<size_t>(unit);
  const account::Unit& shape = table_.units[index];
  CHECK(!frozen || frozen.elements() >= shape.frozen_elements(), "less than what is frozen");
  CHECK(!trained || trained.elements() >= shape.trainable_elements(), "less than what is trained");
  units_[index].frozen = frozen;
  units_[index].trained = trained;
}

void Parameters::bind_gradients(int unit, View gradients) {
  const auto index = static_cast<size_t>(unit);
  CHECK(!gradients || gradients.elements() >= table_.units[index].trainable_elements(),
        "a gradient buffer smaller than what is trained of its unit");
  units_[index].gradients = gradients;
}

BoundParameter Parameters::get(int unit, account::Role role) const {
  const account::Parameter* parameter = table_.find(unit, role);
  return parameter == nullptr ? BoundParameter{} : get(*parameter);
}

BoundParameter Parameters::get(const account::Parameter& parameter) const {
  return bound(parameter, parameter.shape);
}

BoundParameter Parameters::get_fused(int unit, account::Role first, int count) const {
  const account::Parameter* head = table_.find(unit, first);
  if (head == nullptr) return {};
  int64_t rows = head->shape[0];
  for (int i = 1; i < count; ++i) {
    const auto role = static_cast<account::Role>(static_cast<int>(first) + i);
    const account::Parameter* next = table_.find(unit, role);
    CHECK(next != nullptr &&
              next->offset == head->offset + rows * (head->elements() / head->shape[0]),
          "fused parameters are not neighbours");
    rows += next->shape[0];
  }
  const core::Shape shape =
      head->shape.dims() == 2 ? core::Shape{rows, head->shape[1]} : core::Shape{rows};
  return bound(*head, shape);
}

BoundParameter Parameters::bound(const account::Parameter& first, core::Shape shape) const {
  const UnitBuffers& unit = buffers(first.unit);
  const int64_t begin = table_.begin_in_buffer(first);
  if (!first.trainable) return {part_of(unit.frozen, begin, shape), View{}};
  return {part_of(unit.trained, begin, shape), part_of(unit.gradients, begin, shape)};
}

void initialise(View out, const account::ParameterTable& table, int parameter, int64_t first,
                uint64_t seed) {
  const account::Parameter& entry = table.parameters[static_cast<size_t>(parameter)];
  CHECK(first >= 0 && first + out.elements() <= entry.elements(), "beyond the parameter's end");
  if (entry.init == account::Init::ones) {
    std::fill_n(out.as<float>(), out.elements(), 1.0f);
    return;
  }
  if (entry.init == account::Init::zeros || entry.padding > 0) kernels::zero(out);
  if (entry.init == account::Init::zeros) return;
  const uint64_t key = core::stream_key(seed, core::Stream::init);
  const auto std = static_cast<float>(entry.init_std);
  account::for_each_run(entry, first, out.elements(),
                        [&](int64_t in_whole, int64_t in_part, int64_t count) {
                          kernels::fill_normal(out.slice(in_part - first, {count}), key,
                                               entry.init_key, in_whole, std);
                        });
}

}  // namespace tessera::model
