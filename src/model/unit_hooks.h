#pragma once

namespace tessera::model {

/// The seam through which sharding sees the model. A unit is an index of the parameter table's
/// units. The defaults do nothing.
class UnitHooks {
 public:
  virtual ~UnitHooks() = default;
  /// The unit's weights are about to be read, by its forward or by the half of its backward that
  /// makes the gradient of its input alone.
  virtual void before_forward(int /*unit*/) {}
  /// The unit's weights are not needed until it is opened again.
  virtual void after_forward(int /*unit*/) {}
  /// The unit's weights are about to be read, and its gradient is about to be written.
  virtual void before_backward(int /*unit*/) {}
  /// The unit's gradient is about to be written. Only adapters read weights for that.
  virtual void before_weight_gradient(int /*unit*/) {}
  /// Nothing more will be added to the unit's gradient in this way through it, and its weights are
  /// not needed until it is opened again.
  virtual void gradient_ready(int /*unit*/) {}
};

}  // namespace tessera::model
