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

/// Does what they ask for and prints it. An exit status.
int plan_search(const PlanArgs& args, const PlanSearchOptions& options, bool json);

}  // namespace tessera::cli
