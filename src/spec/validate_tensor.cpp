// The part of the validator that says over how many ranks a model's products can be cut.

#include <algorithm>

#include "spec/nearest.h"
#include "spec/validate_findings.h"

namespace tessera::spec {

namespace {

/// Whether each of so many ranks can have its part: heads and columns of its own, and key-value
/// heads of its own or one that it has together with its neighbours.
bool divides(const ModelConfig& model, int64_t ranks) {
  const int64_t kv_heads = model.num_key_value_heads;
  return model.num_attention_heads % ranks == 0 && model.intermediate_size % ranks == 0 &&
         (kv_heads % ranks == 0 || ranks % kv_heads == 0);
}

/// What cannot be cut over so many ranks.
std::vector<std::string> indivisible(const ModelConfig& model, int64_t ranks) {
  std::vector<std::string> names;
  const auto named = [](const char* key, int64_t size) {
    return std::string(key) + " " + std::to_string(size);
  };
  if (model.num_attention_heads % ranks != 0) {
    names.push_back(named("num_attention_heads", model.num_attention_heads));
  }
  const int64_t kv_heads = model.num_key_value_heads;
  const bool as_query_heads = kv_heads == model.num_attention_heads;
  if (!as_query_heads && kv_heads % ranks != 0 && ranks % kv_heads != 0) {
    names.push_back(named("num_key_value_heads", kv_heads));
  }
  if (model.intermediate_size % ranks != 0) {
    names.push_back(named("intermediate_size", model.intermediate_size));
  }
  return names;
}

void check_cuts(Findings& findings) {
  const int64_t ranks = findings.config().parallelism.tensor_parallel_degree;
  if (!findings.legal({"parallelism.tensor_parallel_degree", "model.hidden_size",
                       "model.intermediate_size", "model.num_attention_heads",
                       "model.num_key_value_heads"})) {
    return;
  }
  const ModelConfig model = resolved(findings.config().model);
  if (divides(model, ranks)) return;
  // What divides the heads is at most as many.
  std::vector<std::string> suggestions;
  int64_t below = std::min(ranks, model.num_attention_heads);
  while (!divides(model, below)) --below;
  suggestions.push_back(std::to_string(below));
  for (int64_t above = ranks + 1; above <= model.num_attention_heads; ++above) {
    if (!divides(model, above)) continue;
    suggestions.push_back(std::to_string(above));
    break;
  }
  const std::vector<std::string> names = indivisible(model, ranks);
  findings.add("parallelism.tensor_parallel_degree",
               "does not divide " + join_or(names) + ", of which every rank has as much",
               join_or(suggestions));
}

void check_positions(Findings& findings) {
  const ParallelismConfig& parallelism = findings.config().parallelism;
  const int64_t ranks = parallelism.tensor_parallel_degree;
  const int64_t seq_len = findings.config().data.seq_len;
  if (!parallelism.sequence_parallel ||
      !findings.legal({"parallelism.tensor_parallel_degree", "data.seq_len"}) ||
      seq_len % ranks == 0) {
    return;
  }
  const int64_t below = seq_len / ranks * ranks;
  const std::string lengths =
      (below > 0 ? std::to_string(below) + " or " : std::string()) + std::to_string(below + ranks);
  findings.add(
      "parallelism.sequence_parallel",
      "gives each of the " + std::to_string(ranks) +
          " tensor-parallel ranks as many positions, and they do not divide data.seq_len " +
          std::to_string(seq_len),
      "false, or a data.seq_len of " + lengths);
}

}  // namespace

void check_tensor_parallelism(Findings& findings) {
  if (!findings.legal({"parallelism.tensor_parallel_degree"})) return;
  if (findings.config().parallelism.tensor_parallel_degree > 1) {
    check_cuts(findings);
    check_positions(findings);
    return;
  }
  for (const char* key :
       {"parallelism.sequence_parallel", "parallelism.tensor_parallel_across_hosts"}) {
    if (!findings.changed(key)) continue;
    findings.add(key, "is not used: there is one tensor-parallel rank",
                 "leave it out, or a tensor_parallel_degree of 2 or more");
  }
}

}  // namespace tessera::spec
