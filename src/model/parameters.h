#pragma once

#include <vector>

#include "account/parameter_table.h"
#include "core/memory.h"

namespace tessera::model {

using core::View;

/// A parameter as a layer sees it: views into its unit's flat buffers. A sharding may rebind the
/// unit's buffers between uses, so a layer asks for the views each time and keeps none.
struct BoundParameter {
  View value;  ///< the model's dtype
  View grad;   ///< the gradient dtype; empty when it is not trained
};

/// A unit's flat buffers, borrowed; any may be empty where nothing reads or writes it.
struct UnitBuffers {
  View frozen;     ///< weights that are not trained, at least Unit::frozen_elements()
  View trained;    ///< weights that are, at least Unit::trainable_elements()
  View gradients;  ///< of the trained ones, as many
};

/// The flat weight and gradient buffers of every unit. Buffers are borrowed: whoever shards owns
/// them and binds them here.
class Parameters {
 public:
  /// `table` must outlive this.
  explicit Parameters(const account::ParameterTable& table);

  /// The unit's buffers from now on, weights or gradients; empty views unbind.
  void bind_weights(int unit, View frozen, View trained);
  void bind_gradients(int unit, View gradients);
  const UnitBuffers& buffers(int unit) const { return units_[static_cast<size_t>(unit)]; }

  /// The parameter of that role in that unit. Empty views when the table has none (no bias).
  BoundParameter get(int unit, account::Role role) const;
  /// The views of one entry of the table.
  BoundParameter get(const account::Parameter& parameter) const;
  /// Neighbours in memory as one matrix: Q, K and V weights as [sum of rows, in], biases as [sum].
  BoundParameter get_fused(int unit, account::Role first, int count) const;

  const account::ParameterTable& table() const { return table_; }

 private:
  /// Of `shape`, from the first element of `first` on.
  BoundParameter bound(const account::Parameter& first, core::Shape shape) const;

  const account::ParameterTable& table_;
  std::vector<UnitBuffers> units_;
};

/// Writes the initial fp32 values of the elements [first, first + out.elements()) of one entry of
/// the table into `out` (fp32): a pure function of seed, init_key and the element's index in the
/// whole parameter, so that any shard of any layout starts from the same model. Padding is zero.
void initialise(View out, const account::ParameterTable& table, int parameter, int64_t first,
                uint64_t seed);

}  // namespace tessera::model
