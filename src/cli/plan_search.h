#pragma once

// tessera plan --search, --advise and --emit: layouts that are found, judged, and written for those
// who run them.

#include <cstdint>
#include <string>

#include "cli/plan_args.h"

namespace tessera::cli {

/// The flags beside those of a plan.
struct PlanSearchOptions {
  bool search = false;
  int64_t top = 10;
  bool advise = false;
  std::string emit;  ///< a plan::System's name; empty: none
  std::string out;   ///< a file for the layout as this engine takes it; empty: none

  void add_to(CLI::App& verb);
  /// Whether one was given: plan_search is to be called then, instead of a plain plan.
  bool any() const { return search || advise || !emit.empty() || !out.empty(); }
};

/// Those of a plain plan that a search has a use for.
struct PlanOutput {
  bool json = false;
  bool explain = false;  ///< of --search, the fastest layout
};

/// Does what they ask for and prints it. An exit status. Throws ConfigError for flags that do not
/// go together.
int plan_search(const PlanArgs& args, const PlanSearchOptions& options, const PlanOutput& output);

}  // namespace tessera::cli
