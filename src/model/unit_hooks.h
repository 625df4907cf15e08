#pragma once

namespace tessera::model {

/// The seam through which sharding sees the model. A unit is an index of the parameter table's
/// units. Recompute replays before_forward and after_forward. The defaults do nothing.
class UnitHooks {
 public:
  virtual ~UnitHooks() = default;
  /// The unit's weights are about to be read.
  virtual void before_forward(int /*unit*/) {}
  /// The unit's weights are not needed until its backward.
  virtual void after_forward(int /*unit*/) {}
  /// The unit's gradient is about to be written and, but for the embedding's own backward, its
  /// weights are read again.
  virtual void before_backward(int /*unit*/) {}
  /// Nothing more will be added to the unit's gradient in this micro-batch.
  virtual void gradient_ready(int /*unit*/) {}
};

}  // namespace tessera::model
