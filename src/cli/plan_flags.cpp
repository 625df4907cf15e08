// The flags of a planned run, as --help lists them.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include "cli/plan_args.h"

namespace tessera::cli {

namespace {

struct Flag {
  const char* name;
  const char* type;
  const char* about;
  const char* group;
};

constexpr const char* kWhat = "What is trained";
constexpr const char* kWhere = "On which machines";
constexpr const char* kHow = "Layout (left out: 1, none or 0)";

constexpr std::array<Flag, 35> kFlags = {{
    {"model", "NAME|FOLDER|FILE", "A preset, a Hugging Face folder, or a TOML file with [model]",
     kWhat},
    {"params", "N", "A model of so many parameters and no shape, for --ideal: 7e9, 13B", kWhat},
    {"tokens", "N", "Tokens to train on: 2e12, 2T", kWhat},
    {"seq-len", "N", "Tokens of a sequence (4096, or what the model's positions reach)", kWhat},
    {"global-batch", "N", "Sequences of a step (micro-batch times accumulate times dp)", kWhat},
    {"tuned-batch", "N", "Sequences a step that the learning rate was chosen for", kWhat},
    {"precision", "FORMAT", "Of products: bf16, fp16, fp32, fp8 or fp4 (bf16)", kWhat},
    {"gradient-dtype", "TYPE", "Of gradients in memory: fp32, bf16 or fp16 (the stack's)", kWhat},
    {"optimizer", "NAME", "adamw, adam8bit, muon or sgd (adamw)", kWhat},
    {"fine-tune", "WHAT", "full, lora or qlora (full)", kWhat},
    {"lora-rank", "N", "Width of an adapter (16)", kWhat},
    {"stack", "NAME", "The software that runs it: generic, megatron-lm, torchtitan, …", kWhat},
    {"cluster", "NAME|FILE", "A preset or a TOML file (h100-80g)", kWhere},
    {"links", "FILE", "Links measured by tessera bench comm, instead of the cluster's", kWhere},
    {"constants", "FILE", "Of `plan calibrate --out`, instead of those fitted on published runs",
     kWhere},
    {"gpus", "N", "Devices of the run (tp times cp times pp times dp)", kWhere},
    {"gpus-per-node", "N", "Devices that share a node (the cluster's)", kWhere},
    {"intra-bandwidth", "B/S", "Bytes a device sends in a second inside a node: 450e9", kWhere},
    {"inter-bandwidth", "B/S", "The same between nodes: 50e9", kWhere},
    {"usd-per-gpu-hour", "USD", "Price of a device's hour (the cluster's, a guess)", kWhere},
    {"layout", "KEY=VALUE,…", "In one word: tp=8,pp=4,dp=8,zero=1,micro_batch=1", kHow},
    {"tp", "N", "Ranks that share every product", kHow},
    {"cp", "N", "Ranks that share every sequence", kHow},
    {"pp", "N", "Stages of the pipeline", kHow},
    {"dp", "N", "Replicas; -1: what the others leave of the devices", kHow},
    {"ep", "N", "Ranks over which the experts of a layer are spread", kHow},
    {"zero", "STAGE", "ZeRO: 0 nothing sharded, 1 optimizer, 2 gradients too, 3 weights too", kHow},
    {"shard", "N", "Ranks that a shard group spans (all of a stage's)", kHow},
    {"sp", "0|1", "Sequence parallelism beside tensor parallelism", kHow},
    {"schedule", "NAME", "gpipe, 1f1b, interleaved, zb-h1 or zb-v (1f1b)", kHow},
    {"virtual-stages", "N", "Stages on each rank of the pipeline", kHow},
    {"layers-per-stage", "N,…", "Blocks of every stage (even)", kHow},
    {"micro-batch", "N", "Sequences of a micro-batch", kHow},
    {"accumulate", "N", "Micro-batches of a replica in a step, instead of --micro-batch", kHow},
    {"recompute", "MODE", "Activations computed again: none, selective or full", kHow},
}};

/// An empty text, as a script's unset variable leaves it, is not the same as no flag.
std::function<std::string(const std::string&)> said(const Flag& flag) {
  return [flag](const std::string& text) {
    if (!text.empty()) return std::string();
    return std::string("is empty; leave --") + flag.name + " out, or give it " + flag.type;
  };
}

}  // namespace

void PlanArgs::add_to(CLI::App& verb) {
  for (const Flag& flag : kFlags) {
    const std::string dashed = std::string("--") + flag.name;
    std::string underscored = std::string("--") + flag.name;
    std::replace(underscored.begin() + 2, underscored.end(), '-', '_');
    const std::string names = dashed == underscored ? dashed : dashed + "," + underscored;
    CLI::Option* option = verb.add_option(names, values_[flag.name], flag.about);
    option->type_name(flag.type)->group(flag.group);
    if (std::string_view(flag.name) == "sp") {
      option->expected(0, 1)->default_str("1");
    } else {
      option->check(said(flag), "");
    }
  }
}

}  // namespace tessera::cli
