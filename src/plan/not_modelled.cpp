// What a plan leaves out, so that nobody has to guess.

#include "plan/explain.h"

namespace tessera::plan {

std::vector<std::string> not_modelled(const Case& run) {
  const Layout& layout = run.layout;
  std::vector<std::string> parts = {
      "reading data, evaluation and checkpoints that keep devices waiting",
      "failures, restarts and what is lost by them",
      "other jobs on the same network, and switches or rails with less than their links' bandwidth",
      "devices that slow down when hot or by their power limit, but for stragglers as a whole",
      "offloading of states or activations to the host's memory or to disks",
  };
  const auto add = [&](bool concerns, const char* what) {
    if (concerns) parts.emplace_back(what);
  };
  add(run.stack.causal_skips, "documents in a sequence, whose masks let attention skip more");
  add(run.model.experts.has_value(),
      "tokens unevenly spread over experts: the fullest expert sets the pace");
  add(layout.cp > 1, "attention that some ranks of a sequence have more of than others");
  add(layout.zero == 3, "the order in which weights are gathered ahead, and memory freed late");
  add(layout.pp > 1, "micro-batches of unequal work, and a pipeline drained for validation");
  add(run.recipe.format == Format::fp16, "steps that loss scaling skips");
  add(run.recipe.format == Format::fp8 || run.recipe.format == Format::fp4,
      "which tensors a recipe keeps in 16 bits, and what its scales take");
  add(run.recipe.optimizer == Optimizer::muon,
      "Muon's iterations of matrix products: its step takes longer than said");
  add(run.recipe.fine_tune == FineTune::qlora, "the time in which 4-bit weights are unpacked");
  add(run.model.window > 0, "kernels for short windows that reach less than those for long ones");
  add(run.cluster.device.family == Family::host,
      "processes that share cores and caches with the ranks");
  return parts;
}

std::vector<std::string> not_modelled(const IdealCase& given) {
  std::vector<std::string> parts = {
      "attention's own FLOPs, which grow with the length of sequences",
      "every efficiency but the rate that was given: shapes, kernels, memory bandwidth",
      "communication that is not hidden: its times stand beside the step and are not in it",
      "norms, biases and padding of the vocabulary; logits; buffers of communication and of the "
      "allocator; weights that ZeRO-3 gathers",
      "stages of unequal layers, and the embedding and head that the first and last have besides",
      "latency: collectives take their bytes over a link's bandwidth",
  };
  if (given.parameters > 0) {
    parts.emplace_back(
        "activations and the traffic of tp, pp, cp and ep, which follow from a shape: name a "
        "model for them");
  }
  if (given.run.layout.zero == 3) {
    parts.emplace_back(
        "weights gathered anew for every micro-batch: they are gathered once a step");
  }
  if (given.run.layout.recompute == spec::Recompute::full) {
    parts.emplace_back("the time of the second forward: the rate is one of 6 N D");
  }
  return parts;
}

}  // namespace tessera::plan
