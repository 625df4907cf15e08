#pragma once

// The flags that describe a planned run, for every verb that plans or simulates one.

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "plan/estimate.h"

namespace CLI {
class App;
}

namespace tessera::cli {

/// What was asked for.
struct PlanRequest {
  plan::Case run;
  plan::Constants constants;  ///< those of --constants, or the shipped ones
  double parameters = 0;      ///< --params: a model of so many, without a shape; else 0
  int64_t gpus = 1;           ///< devices of the run
  double tokens = 0;          ///< to train on; 0: not said
  int64_t tuned_batch = 0;  ///< sequences a step for which the learning rate was chosen; 0: unknown
  std::set<std::string> said;  ///< flags that were given, without dashes, --layout's among them

  bool says(const std::string& flag) const { return said.contains(flag); }
};

/// Whether a layout is asked for in full, or what is left open will be searched.
enum class LayoutFlags : uint8_t { complete, open };

class PlanArgs {
 public:
  /// Declares the flags on `verb`, each with dashes and with underscores. `verb` must outlive this.
  void add_to(CLI::App& verb);
  /// The run that they mean. Throws ConfigError with every mistake at once, and the nearest values
  /// that work. Complete: dp is what tp, cp and pp leave of the devices, and the layout is legal.
  /// Open: --gpus is needed, and the layout has what was said (PlanRequest::says tells), no more.
  PlanRequest read(LayoutFlags layout = LayoutFlags::complete) const;
  /// Whether any but these was given.
  bool any_but(const std::set<std::string>& flags) const;
  /// What was given for a flag; "" where nothing was.
  std::string given(const std::string& flag) const;

 private:
  std::map<std::string, std::string> values_;  // by flag; empty: not given
};

}  // namespace tessera::cli
