#pragma once

// Published utilisation follows several conventions, which differ by up to a third for the same
// step. This planner has one: model FLOPs with attention over all keys (PaLM, Chowdhery et al.
// 2022, appendix B) over the peak in bf16, whatever the run's format. The others are here to be
// converted from and to; all of them are FLOPs of a step over its time, the devices and a peak.

#include <string_view>
#include <vector>

#include "plan/estimate.h"

namespace tessera::plan {

enum class Convention : uint8_t {
  palm,             ///< this planner's
  causal,           ///< attention over the keys that the mask leaves: Megatron-Bridge, DeepSeek-V3
  parameters,       ///< 6 N D without attention; N counts the embedding too
  hardware,         ///< with what is computed again, attention over all keys: HFU
  megatron_2021,    ///< 96 B s l h² (1 + s/6h + V/16lh): SC'21, BLOOM, MT-NLG; full recomputation,
                    ///< and the logits computed again too, whatever the run does
  korthikanti,      ///< 72 B l s h² (1 + s/3h + V/12lh): HFU of selective recomputation
  no_query_groups,  ///< as palm, keys and values of every head: DGX Cloud before v25.05
};
struct ConventionInfo {
  Convention convention;
  std::string_view name;  ///< "palm", as in JSON
  std::string_view about;
};
const std::vector<ConventionInfo>& conventions();

/// FLOPs of one step by that convention.
double flops_by(Convention convention, const Case& run);
/// Utilisation by that convention over the peak of `format`; fp8 rows are published over the peak
/// in fp8, which is twice that of bf16.
double utilisation(Convention convention, const Case& run, double step_s, Format format);
/// Seconds of a step that was published as so many FLOP/s of a device, by that convention.
double step_seconds(Convention convention, const Case& run, double flops_per_device);

}  // namespace tessera::plan
