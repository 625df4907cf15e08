#pragma once

// Published training runs: what others measured on machines of theirs, as rows of a CSV. A planner
// is judged by them, and its constants are fitted on a part of them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/estimate.h"

namespace tessera::plan {

/// One row. Numbers that the source does not give are empty; text is as it is there.
struct PublishedRun {
  std::string id, source, stack, run, model, gpu, precision, recompute, recompute_detail, schedule;
  std::string reshard_after_forward;
  std::string memory_text;  ///< "OOM" where it did not fit
  std::optional<double> params_b, layers, hidden, heads, kv_heads, ffn, vocab, seq_len;
  std::optional<double> num_experts, top_k, shared_experts, dense_layers, dense_ffn;
  std::optional<double> num_gpus, nodes, tp, cp, pp, vpp, dp, ep, zero_stage;
  std::optional<double> micro_batch, global_batch;
  std::optional<double> step_time_s, mem_gib_per_gpu, mfu_pct_normalised;
  std::string assumed;  ///< fields that the row's collector had to assume

  /// What the id begins with: "sc21t1" of "sc21t1-003".
  std::string group() const { return id.substr(0, id.find('-')); }
  bool out_of_memory() const { return memory_text == "OOM"; }
  bool multi_node() const { return nodes.value_or(1) > 1; }
  bool has_experts() const { return num_experts.value_or(0) > 0; }
};

/// The rows of a CSV with a header; columns are found by name, unknown ones are left out.
struct PublishedRuns {
  std::vector<PublishedRun> runs;
  std::vector<std::string> errors;  ///< each with its record, the header being the first
};
PublishedRuns parse_published_runs(std::string_view csv);

/// A row as a case of the planner, or why it cannot be one.
struct ModelledRun {
  std::optional<Case> run;
  std::string skipped;               ///< the reason
  std::vector<std::string> assumed;  ///< what the row does not say and this filled in
};
ModelledRun modelled(const PublishedRun& row);

}  // namespace tessera::plan
