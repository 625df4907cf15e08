#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "account/sharding.h"
#include "model/unit_hooks.h"

namespace tessera::parallel {

/// What data parallelism does around the units of a model, over the micro-batches of a step. All
/// ranks of a group go through the same units in the same order; one that is out of samples goes
/// through them without computing (Transformer::skip_forward and its like).
class StepHooks : public model::UnitHooks {
 public:
  /// A training step begins, which uses the units as planned: its gradient is zero.
  virtual void begin_step(const account::UnitPlan& /*plan*/) {}
  /// Forwards begin that do not train.
  virtual void begin_evaluation(const account::UnitPlan& /*plan*/) {}
  /// The last pass is over. Afterwards what this rank owns of the gradient is that of all ranks.
  virtual void finish_step() {}
};

/// Several, as one: what comes first in the list is first to open a unit and last to close it.
class HookChain final : public StepHooks {
 public:
  void add(std::unique_ptr<StepHooks> hooks) { chain_.push_back(std::move(hooks)); }

  void begin_step(const account::UnitPlan& plan) override {
    for (auto& hooks : chain_) hooks->begin_step(plan);
  }
  void begin_evaluation(const account::UnitPlan& plan) override {
    for (auto& hooks : chain_) hooks->begin_evaluation(plan);
  }
  void before_forward(int unit) override {
    for (auto& hooks : chain_) hooks->before_forward(unit);
  }
  void before_backward(int unit) override {
    for (auto& hooks : chain_) hooks->before_backward(unit);
  }
  void before_weight_gradient(int unit) override {
    for (auto& hooks : chain_) hooks->before_weight_gradient(unit);
  }
  void after_forward(int unit) override {
    for (auto i = chain_.rbegin(); i != chain_.rend(); ++i) (*i)->after_forward(unit);
  }
  void gradient_ready(int unit) override {
    for (auto i = chain_.rbegin(); i != chain_.rend(); ++i) (*i)->gradient_ready(unit);
  }
  void finish_step() override {
    for (auto i = chain_.rbegin(); i != chain_.rend(); ++i) (*i)->finish_step();
  }

 private:
  std::vector<std::unique_ptr<StepHooks>> chain_;
};

}  // namespace tessera::parallel
