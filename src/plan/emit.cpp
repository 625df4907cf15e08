#include "plan/emit.h"

#include <algorithm>
#include <string>

#include "plan/emit_systems.h"
#include "plan/not_run_yet.h"
#include "spec/options.h"

namespace tessera::plan {

std::optional<System> find_system(std::string_view name) {
  if (name == "megatron") return System::megatron;
  if (name == "deepspeed") return System::deepspeed;
  if (name == "torchtitan") return System::torchtitan;
  return std::nullopt;
}

namespace {

/// Of the layout and the recipe; the device is another one in any case.
std::vector<std::string> not_run_on_a_host(Case run) {
  run.cluster.device.family = Family::host;
  std::vector<std::string> missing = not_run_yet(run);
  const std::vector<int64_t> blocks = blocks_of_stages(run.model, run.layout);
  if (std::find(blocks.begin(), blocks.end() - 1, 0) != blocks.end() - 1) {
    missing.emplace_back("a stage without a layer but the last");
  }
  return missing;
}

}  // namespace

std::string numbers(const std::vector<int64_t>& values) {
  std::string text = "[";
  for (const int64_t value : values) text += (text.size() > 1 ? ", " : "") + std::to_string(value);
  return text + ']';
}

int64_t accumulation(const Case& run) {
  return num_micro_batches(run.recipe, run.layout);
}

std::vector<std::string> heading(const Case& run) {
  const Layout& layout = run.layout;
  return {run.model.name + " on " + std::to_string(layout.devices()) + " devices of " +
              run.cluster.name + ": tp " + std::to_string(layout.tp) + " x cp " +
              std::to_string(layout.cp) + " x pp " + std::to_string(layout.pp) + " x dp " +
              std::to_string(layout.dp),
          std::to_string(run.recipe.global_batch) + " sequences of " +
              std::to_string(run.recipe.seq_len) + " tokens in " +
              std::to_string(accumulation(run)) + " micro-batches a replica"};
}

namespace {

/// What it is for, and what of it does not run.
std::string head_of(const Case& run) {
  std::string text;
  for (const std::string& line : heading(run)) text += "# " + line + '\n';
  text += "# Planned for data.seq_len = " + std::to_string(run.recipe.seq_len) + ".\n";
  const std::vector<std::string> missing = not_run_on_a_host(run);
  if (missing.empty()) return text;
  text += "#\n# NOT RUNNABLE AS IT IS. The engine of this version does not have:\n";
  for (const std::string& what : missing) text += "#   " + what + '\n';
  return text +
         "# Keys for it are commented out below, or there are none: what is left is another plan.\n";
}

std::string emit_tessera(const Case& run) {
  const Layout& layout = run.layout;
  std::string text = head_of(run);
  const auto key = [&](const char* name, const std::string& value) {
    text += std::string(name) + " = " + value + '\n';
  };
  const auto number = [&](const char* name, int64_t value) { key(name, std::to_string(value)); };
  const auto absent = [&](const std::string& line) { text += "# " + line + '\n'; };

  text += "\n[training]\n";
  number("global_batch_size", run.recipe.global_batch);
  number("micro_batch_size", layout.micro_batch);
  if (run.recipe.format == Format::bf16 || run.recipe.format == Format::fp32) {
    const bool full = run.recipe.format == Format::fp32;
    key("precision", full ? "\"fp32\"" : "\"bf16\"");
    if (!full) key("gradient_dtype", run.recipe.gradient_bytes == 2 ? "\"bf16\"" : "\"fp32\"");
  } else {
    absent("precision: products in a format that is not there yet");
  }
  if (const char* optimizer = optimizer_not_run(run.recipe.optimizer)) {
    absent(std::string("optimizer: ") + optimizer + " is planned for; a run takes its config's");
  }

  text += "\n[parallelism]\n";
  number("data_parallel_degree", layout.dp);
  number("tensor_parallel_degree", layout.tp);
  if (layout.tp > 1) key("sequence_parallel", layout.sequence_parallel ? "true" : "false");
  if (layout.tp > run.cluster.devices_per_node) key("tensor_parallel_across_hosts", "true");
  number("pipeline_parallel_degree", layout.pp);
  if (layout.pp > 1) {
    key("pipeline_schedule", '"' + std::string(spec::schedule_name(layout.schedule)) + '"');
    number("virtual_stages", layout.v);
    key("layers_per_stage", numbers(blocks_of_stages(run.model, layout)));
  }
  number("zero_stage", layout.zero);
  // Shards lie over dp · cp here; without cp what is left of a group is over dp.
  if (layout.zero > 0 && layout.shard > 0 && layout.cp == 1) number("shard_degree", layout.shard);
  if (layout.cp > 1) absent("context_parallel_degree = " + std::to_string(layout.cp));
  if (layout.ep > 1) absent("expert_parallel_degree = " + std::to_string(layout.ep));

  text += "\n[activation_checkpoint]\n";
  key("mode", '"' + std::string(spec::name_of(layout.recompute)) + '"');
  return text;
}

}  // namespace

std::string emit(const Case& run, System system) {
  switch (system) {
    case System::tessera:
      return emit_tessera(run);
    case System::megatron:
      return emit_megatron(run);
    case System::deepspeed:
      return emit_deepspeed(run);
    case System::torchtitan:
      return emit_torchtitan(run);
  }
  return {};
}

}  // namespace tessera::plan
