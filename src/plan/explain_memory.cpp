// Why parameters and memory are what they are.

#include <algorithm>

#include "plan/activations.h"
#include "plan/parts.h"
#include "plan/reasons.h"

namespace tessera::plan {

namespace {

/// " / ranks", or nothing where nothing is shared.
std::string over(int64_t ranks) {
  return ranks > 1 ? " / " + term(ranks) : "";
}

/// Bytes of one kind of state, which ZeRO shares from a stage on.
class States {
 public:
  States(const Case& run, const LocalParameters& local, Reasons& reasons)
      : run_(run), local_(local), reasons_(reasons) {}

  void add(const char* name, double bytes, int64_t from_stage, double result) {
    const Layout& layout = run_.layout;
    const bool shared = layout.zero >= from_stage;
    const std::string formula = std::string("parameters of the device * bytes") +
                                (shared ? " / ranks of a shard group" : "");
    const int64_t shards = shared ? layout.shards() : 1;
    const int64_t of_experts = shared ? expert_shards(layout) : 1;
    std::string values;
    if (run_.recipe.fine_tune != FineTune::full) {
      values = expression(local_.trainable, " * ", bytes, over(shards));
      if (from_stage == 3) {
        values = expression(local_.total(), " * ", frozen_weight_bytes(run_.recipe), over(shards),
                            " + ", values);
      }
    } else {
      values = expression(local_.dense, " * ", bytes, over(shards));
      if (local_.experts > 0) {
        values += expression(" + ", local_.experts, " * ", bytes, over(of_experts));
      }
    }
    const bool adapters = run_.recipe.fine_tune != FineTune::full;
    reasons_.add(
        std::string("memory_bytes_per_gpu.") + name,
        adapters ? formula + ", of the adapters; weights of the frozen model besides" : formula,
        values, result);
  }

 private:
  const Case& run_;
  const LocalParameters& local_;
  Reasons& reasons_;
};

/// Micro-batches of a stage that the rank keeps at once: those of the schedule itself. Past a few
/// times the ranks, more micro-batches do not add to it but in GPipe.
double chunks_of_schedule(const Case& run, int64_t rank) {
  const Layout& layout = run.layout;
  const int64_t micro_batches = num_micro_batches(run.recipe, layout);
  if (layout.pp == 1) return 1;
  if (layout.schedule == spec::ScheduleKind::gpipe) {
    return static_cast<double>(micro_batches * layout.v);
  }
  const int64_t enough = 4 * layout.pp;
  const int64_t taken =
      micro_batches <= enough ? micro_batches : enough + micro_batches % layout.pp;
  return static_cast<double>(
      spec::peak_in_flight(spec::make_schedule(layout.schedule, layout.pp, layout.v, taken), rank));
}

void explain_activations(const Case& run, const Memory& memory, size_t rank, Reasons& reasons) {
  const std::vector<Stage> stages = stages_of_rank(run, static_cast<int64_t>(rank));
  double kept = 0, working = 0;
  for (const Stage& stage : stages) {
    const StageActivations activations = stage_activations(run, stage);
    kept += activations.kept;
    working = std::max(working, activations.working);
  }
  const double of_stage = kept / static_cast<double>(stages.size());
  reasons.add("memory_bytes_per_gpu.activations",
              "kept of a micro-batch in a stage * kept at once by the schedule + working memory of "
              "a layer + logits",
              expression(of_stage, " * ", chunks_of_schedule(run, static_cast<int64_t>(rank)),
                         " + ", working, " + ", memory.logits),
              memory.activations);
  if (memory.logits > 0) {
    const double tokens = static_cast<double>(run.layout.micro_batch * run.recipe.seq_len) /
                          static_cast<double>(run.layout.cp);
    reasons.add("memory_bytes_per_gpu.logits",
                "tokens of a micro-batch * rows of the vocabulary here * bytes of a logit",
                expression(tokens, " * ", padded_vocabulary(run.model, run.layout.tp), " / ",
                           run.layout.tp, " * ", run.stack.logit_bytes),
                memory.logits);
  }
}

void explain_gathered(const Case& run, const LocalParameters& local, const StateBytes& bytes,
                      double gathered, Reasons& reasons) {
  const Layout& layout = run.layout;
  std::string stays = "0";
  if (!layout.reshard_after_forward) {
    stays = layout.pp == 1
                ? expression(local.dense, " * ", bytes.weight)
                : expression(local.dense, " * (", bytes.weight, " + ", bytes.gradient, ")");
  }
  reasons.add("memory_bytes_per_gpu.gathered",
              "largest layer * (2 weights + a gradient) + embedding or head + what stays whole",
              expression(local.largest_unit, " * (2 * ", bytes.weight, " + ", bytes.gradient,
                         ") + ", local.largest_edge, " * ", bytes.weight, " + ", stays),
              gathered);
}

}  // namespace

void explain_parameters(const Case& run, Reasons& reasons) {
  const Model& model = run.model;
  const ParameterCounts counts = count_parameters(model);
  const int64_t layers = model.dense.num_hidden_layers, sparse = model.layers_with_experts();
  const int64_t experts = model.experts ? model.experts->count : 0;
  const int64_t top_k = model.experts ? model.experts->top_k : 0;
  const std::string outside =
      expression(layers, " * ", counts.attention, " + ", layers - sparse, " * ", counts.mlp,
                 sparse > 0 ? expression(" + ", sparse, " * ", counts.shared_experts) : "");
  const auto routed = [&](int64_t number) {
    return sparse > 0 ? expression(" + ", sparse, " * ", number, " * ", counts.expert) : "";
  };
  const int64_t positions = model.dense.architecture == spec::Architecture::gpt2
                                ? model.dense.max_position_embeddings * model.dense.hidden_size
                                : 0;
  reasons.add(
      "parameters.per_layer", "attention's products + the MLP's, or shared experts and router",
      expression(counts.attention, " + ", counts.mlp > 0 ? counts.mlp : counts.shared_experts),
      static_cast<double>(counts.attention +
                          (counts.mlp > 0 ? counts.mlp : counts.shared_experts)));
  reasons.add("parameters.without_norms",
              "layers * attention + dense layers * MLP + routed and shared experts + embedding + "
              "head + learned positions",
              expression(outside, routed(experts), " + ", counts.embedding, " + ", counts.head,
                         " + ", positions),
              static_cast<double>(counts.without_norms));
  reasons.add("parameters.total", "the same + norms and biases",
              expression(counts.without_norms, " + ", counts.total - counts.without_norms),
              static_cast<double>(counts.total));
  reasons.add("parameters.matmul",
              "those that a token is multiplied with: of experts its own, of "
              "the embedding the head's use",
              expression(outside, routed(top_k), " + ", counts.embedding),
              static_cast<double>(counts.matmul));
  reasons.add("parameters.active", "total - experts that a token does not go to",
              expression(counts.total, " - ", sparse, " * ", experts - top_k, " * ", counts.expert),
              static_cast<double>(counts.active));
}

void explain_memory(const Case& run, const Estimate& estimate, Reasons& reasons) {
  const size_t rank = estimate.worst_rank;
  const Memory& memory = estimate.memory[rank];
  const LocalParameters local = parameters_of(run, stages_of_rank(run, static_cast<int64_t>(rank)));
  const StateBytes bytes = bytes_per_parameter(run);
  States states(run, local, reasons);
  states.add("weights", bytes.weight, 3, memory.weights);
  states.add("gradients", bytes.gradient, 2, memory.gradients);
  states.add("optimizer", bytes.optimizer, 1, memory.optimizer);
  explain_activations(run, memory, rank, reasons);
  const std::string prefix = "memory_bytes_per_gpu.";
  if (memory.gathered > 0) explain_gathered(run, local, bytes, memory.gathered, reasons);
  if (memory.communication > 0) {
    reasons.add(
        prefix + "communication",
        "4 messages between stages * tokens * width * bytes / tp with sequence parallelism",
        expression("4 * ", run.layout.micro_batch * run.recipe.seq_len, " / ", run.layout.cp, " * ",
                   run.model.dense.hidden_size, " * ", stream_bytes(run.recipe), " / ",
                   run.layout.sequence_parallel ? run.layout.tp : 1),
        memory.communication);
  }
  reasons.add(prefix + "runtime", "context and buffers + the allocator's share of everything else",
              expression(run.stack.runtime_bytes, " + ", run.stack.allocator_loss, " * ",
                         memory.total() - memory.runtime),
              memory.runtime);
  reasons.add(prefix + "state", "weights + gradients + optimizer",
              expression(memory.weights, " + ", memory.gradients, " + ", memory.optimizer),
              memory.state());
  reasons.add(prefix + "total",
              "state + activations + gathered + communication + runtime; it fits where it is at "
              "most the " +
                  term(static_cast<double>(run.cluster.device.memory_bytes)) + " of a device",
              expression(memory.state(), " + ", memory.activations, " + ", memory.gathered, " + ",
                         memory.communication, " + ", memory.runtime),
              memory.total());
}

}  // namespace tessera::plan
