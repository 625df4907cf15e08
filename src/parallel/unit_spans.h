#pragma once

#include <string>
#include <vector>

#include "account/parameter_table.h"
#include "parallel/step_hooks.h"
#include "trace/recorder.h"

namespace tessera::parallel {

/// Leaves a span on the compute lane for every unit that a pass goes through, there and back. Last
/// in the chain, so that it opens when a unit's weights are there. The head's span covers both
/// ways. That of the embedding covers its forward: what is left of its backward is short.
class UnitSpans final : public StepHooks {
 public:
  explicit UnitSpans(const account::ParameterTable& table);

  /// Null: records nothing.
  void set_recorder(trace::Recorder* recorder) { recorder_ = recorder; }

  void before_forward(int unit) override;
  void after_forward(int unit) override;
  void before_backward(int unit) override { before_forward(unit); }
  void before_weight_gradient(int unit) override { before_forward(unit); }
  void gradient_ready(int unit) override { after_forward(unit); }

 private:
  std::vector<std::string> names_;
  trace::Recorder* recorder_ = nullptr;
  int open_ = -1;  ///< the unit under way
  int64_t begin_ns_ = 0;
};

}  // namespace tessera::parallel
