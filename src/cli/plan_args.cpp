#include "cli/plan_args.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "cli/cluster_file.h"
#include "cli/plan_model.h"
#include "core/error.h"
#include "formats/config_io.h"
#include "spec/nearest.h"
#include "spec/options.h"
#include "spec/text.h"

namespace tessera::cli {

namespace {

using spec::Violation;

struct Flag {
  const char* name;
  const char* type;
  const char* about;
  const char* group;
};

constexpr const char* kWhat = "What is trained";
constexpr const char* kWhere = "On which machines";
constexpr const char* kHow = "Layout (left out: 1, none or 0)";

constexpr std::array<Flag, 34> kFlags = {{
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

/// Keys of the layout grammar that are called otherwise as flags.
std::string flag_of_key(std::string_view key) {
  if (key == "v") return "virtual-stages";
  std::string flag(key);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.push_back(spec::trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// Reads flags; every mistake is kept.
class Reader {
 public:
  explicit Reader(const std::map<std::string, std::string>& values) : values_(values) {
    read_layout();
  }

  PlanRequest read(LayoutFlags how);

 private:
  void add(const std::string& flag, std::string why, std::string suggest) {
    violations_.push_back({flag, values_[flag], std::move(why), std::move(suggest), "--" + flag});
  }
  bool has(const std::string& flag) const { return !values_.at(flag).empty(); }

  int64_t count(const std::string& flag, int64_t otherwise, int64_t least = 1,
                int64_t most = int64_t{1} << 40) {
    if (!has(flag)) return otherwise;
    const std::string& text = values_[flag];
    int64_t value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = result.ec == std::errc() && result.ptr == text.data() + text.size();
    if (whole && value >= least && value <= most) return value;
    add(flag, "is not a whole number from " + std::to_string(least) + " to " + std::to_string(most),
        std::to_string(std::clamp(whole ? value : otherwise, least, most)));
    return otherwise;
  }
  double number(const std::string& flag, const char* example) {
    if (!has(flag)) return 0;
    const std::optional<double> value = scaled_number(values_[flag]);
    if (!value) add(flag, "is not a number above 0", example);
    return value.value_or(0);
  }
  template <class Value>
  Value choice(const std::string& flag,
               const std::vector<std::pair<std::string_view, Value>>& choices, Value otherwise) {
    if (!has(flag)) return otherwise;
    std::vector<std::string> all;
    std::vector<std::string_view> names;
    for (const auto& [name, value] : choices) {
      if (values_[flag] == name) return value;
      names.push_back(name);
      all.emplace_back(name);
    }
    const std::string_view nearest = spec::nearest_name(values_[flag], names);
    add(flag, "is none of " + spec::join_or(all),
        nearest.empty() ? all.front() : std::string(nearest));
    return otherwise;
  }

  void read_layout();
  void read_model();
  void read_recipe();
  void read_cluster();
  void read_degrees(LayoutFlags how);
  void read_pipeline();
  void read_batch(LayoutFlags how);
  void check_layout();

  std::map<std::string, std::string> values_;
  std::vector<Violation> violations_;
  PlanRequest request_;
};

void Reader::read_layout() {
  for (const auto& [flag, value] : values_) {
    if (!value.empty()) request_.said.insert(flag);
  }
  if (!has("layout")) return;
  constexpr std::array<std::string_view, 13> kKeys = {
      "dp", "tp", "pp",       "cp",         "ep",          "zero",     "shard",
      "sp", "v",  "schedule", "accumulate", "micro_batch", "recompute"};
  for (const std::string_view pair : split(values_["layout"], ',')) {
    const size_t equals = pair.find('=');
    const std::string_view key = spec::trimmed(pair.substr(0, equals));
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end() ||
        equals == std::string_view::npos) {
      const std::string_view nearest = spec::nearest_name(key, {kKeys.begin(), kKeys.end()});
      violations_.push_back({"layout", std::string(pair), "is not key=value of a key of layouts",
                             nearest.empty() ? "tp=8,pp=4,dp=8" : std::string(nearest),
                             "--layout"});
      continue;
    }
    const std::string flag = flag_of_key(key);
    const std::string value(spec::trimmed(pair.substr(equals + 1)));
    if (has(flag) && values_[flag] != value) {
      add(flag, "is said twice: --layout has " + std::string(pair), "one of the two");
    }
    values_[flag] = value;
    request_.said.insert(flag);
  }
}

void Reader::read_model() {
  request_.parameters = number("params", "7e9 or 7B");
  if (has("model") && has("params")) {
    add("params", "is for a model without a shape, and --model names one", "one of the two");
  } else if (has("model")) {
    request_.run.model = cli::read_model(values_["model"], violations_);
  } else if (has("params")) {
    request_.run.model.name = values_["params"] + " parameters";
  } else {
    add("model", "is missing", "--model llama-3-8b, or --params 7e9 with --ideal");
  }
}

void Reader::read_recipe() {
  plan::Recipe& recipe = request_.run.recipe;
  std::vector<std::pair<std::string_view, const plan::Stack*>> stacks;
  for (const plan::Stack& stack : plan::stacks()) stacks.emplace_back(stack.name, &stack);
  request_.run.stack = *choice<const plan::Stack*>("stack", stacks, &plan::find_stack("generic"));
  recipe.format = choice<plan::Format>("precision",
                                       {{"bf16", plan::Format::bf16},
                                        {"fp16", plan::Format::fp16},
                                        {"fp32", plan::Format::fp32},
                                        {"fp8", plan::Format::fp8},
                                        {"fp4", plan::Format::fp4}},
                                       plan::Format::bf16);
  recipe.gradient_bytes = choice<int64_t>("gradient-dtype", {{"fp32", 4}, {"bf16", 2}, {"fp16", 2}},
                                          request_.run.stack.gradient_bytes);
  recipe.optimizer = choice<plan::Optimizer>("optimizer",
                                             {{"adamw", plan::Optimizer::adamw},
                                              {"adam8bit", plan::Optimizer::adam8bit},
                                              {"muon", plan::Optimizer::muon},
                                              {"sgd", plan::Optimizer::sgd}},
                                             plan::Optimizer::adamw);
  recipe.fine_tune = choice<plan::FineTune>("fine-tune",
                                            {{"full", plan::FineTune::full},
                                             {"lora", plan::FineTune::lora},
                                             {"qlora", plan::FineTune::qlora}},
                                            plan::FineTune::full);
  recipe.lora_rank = count("lora-rank", recipe.lora_rank);
  recipe.dropout = request_.run.model.dense.dropout;
  request_.tokens = number("tokens", "2e12 or 2T");
  const spec::ModelConfig& config = request_.run.model.dense;
  const bool shaped = request_.parameters == 0;
  const int64_t reach = shaped ? std::min<int64_t>(4096, spec::longest_sequence(config)) : 4096;
  recipe.seq_len = count("seq-len", reach, 1, int64_t{1} << 30);
  const bool learned = config.architecture == spec::Architecture::gpt2;
  if (has("model") && violations_.empty() && learned &&
      recipe.seq_len > spec::longest_sequence(config)) {
    add("seq-len", "is beyond the positions that the model has learned",
        std::to_string(spec::longest_sequence(config)));
  }
}

void Reader::read_cluster() {
  plan::Cluster& cluster = request_.run.cluster;
  cluster = cli::read_cluster(has("cluster") ? values_["cluster"] : "h100-80g", violations_);
  if (has("links")) read_links(values_["links"], cluster, violations_);
  cluster.devices_per_node = count("gpus-per-node", cluster.devices_per_node, 1, 1 << 20);
  if (has("intra-bandwidth")) cluster.intra.bytes_per_s = number("intra-bandwidth", "450e9");
  if (has("inter-bandwidth")) cluster.inter.bytes_per_s = number("inter-bandwidth", "50e9");
  const plan::Format format = request_.run.recipe.format;
  if (cluster.device.peak(format) <= 0) {
    add("precision", "is a format that the " + cluster.device.name + " has no rate of", "bf16");
  }
  if (has("usd-per-gpu-hour")) cluster.usd_per_device_hour = number("usd-per-gpu-hour", "2.5");
}

void Reader::read_degrees(LayoutFlags how) {
  constexpr int64_t kMost = 1 << 20;
  plan::Layout& layout = request_.run.layout;
  layout.tp = count("tp", 1, 1, kMost);
  layout.cp = count("cp", 1, 1, kMost);
  layout.pp = count("pp", 1, 1, kMost);
  layout.ep = count("ep", 1, 1, kMost);
  layout.zero = count("zero", 0, 0, 3);
  layout.shard = count("shard", 0, 1, kMost);
  layout.sequence_parallel =
      choice<bool>("sp", {{"1", true}, {"0", false}, {"true", true}, {"false", false}}, false);
  const int64_t gpus = count("gpus", 0, 1, int64_t{1} << 30);
  const bool open = !has("dp") || values_["dp"] == "-1";
  const int64_t dp = open ? -1 : count("dp", 1, 1, kMost);
  const int64_t of_replica = layout.tp * layout.cp * layout.pp;
  request_.gpus = gpus > 0 ? gpus : of_replica * std::max<int64_t>(dp, 1);
  layout.dp = dp > 0 ? dp : std::max<int64_t>(request_.gpus / of_replica, 1);
  if (how == LayoutFlags::open) {
    if (gpus == 0) add("gpus", "is missing", "--gpus 8");
    return;
  }
  if (request_.gpus == layout.devices()) return;
  const std::string product = "tp * cp * pp" + std::string(open ? "" : " * dp") + " = " +
                              std::to_string(open ? of_replica : layout.devices());
  add("gpus", open ? "is no multiple of " + product : "is not " + product,
      std::to_string(layout.devices()) +
          (open ? " or " + std::to_string(of_replica * (request_.gpus / of_replica + 1)) : ""));
}

void Reader::read_pipeline() {
  plan::Layout& layout = request_.run.layout;
  const bool interleaves = has("virtual-stages") && values_["virtual-stages"] != "1";
  std::vector<std::pair<std::string_view, spec::ScheduleKind>> kinds;
  for (const spec::ScheduleKind kind : spec::kNamedSchedules) {
    kinds.emplace_back(spec::schedule_name(kind), kind);
  }
  layout.schedule = choice<spec::ScheduleKind>(
      "schedule", kinds,
      interleaves ? spec::ScheduleKind::interleaved : spec::ScheduleKind::one_f_one_b);
  layout.v =
      count("virtual-stages", layout.pp > 1 ? spec::usual_chunks(layout.schedule) : 1, 1, 1024);
  layout.recompute = choice<spec::Recompute>("recompute",
                                             {{"none", spec::Recompute::none},
                                              {"selective", spec::Recompute::selective},
                                              {"full", spec::Recompute::full}},
                                             spec::Recompute::none);
  if (!has("layers-per-stage")) return;
  for (const std::string_view part : split(values_["layers-per-stage"], ',')) {
    int64_t blocks = 0;
    const auto result = std::from_chars(part.data(), part.data() + part.size(), blocks);
    if (result.ec != std::errc() || result.ptr != part.data() + part.size() || blocks < 0) {
      return add("layers-per-stage", "is no list of whole numbers", "9,8,8,7");
    }
    layout.layers_per_stage.push_back(blocks);
  }
}

void Reader::read_batch(LayoutFlags how) {
  plan::Layout& layout = request_.run.layout;
  plan::Recipe& recipe = request_.run.recipe;
  layout.micro_batch = count("micro-batch", 1, 1, 1 << 20);
  const int64_t accumulate = count("accumulate", layout.pp > 1 ? 2 * layout.pp : 1, 1, 1 << 20);
  const int64_t made =
      how == LayoutFlags::open ? recipe.global_batch : layout.micro_batch * accumulate * layout.dp;
  recipe.global_batch = count("global-batch", made, 1, int64_t{1} << 30);
  if (!has("global-batch") || !has("accumulate")) return;
  if (has("micro-batch")) {
    if (made != recipe.global_batch) {
      add("accumulate",
          "times micro-batch times dp makes " + std::to_string(made) + " sequences of a step",
          "two of --global-batch, --micro-batch and --accumulate");
    }
    return;
  }
  const int64_t share = (recipe.global_batch + layout.dp - 1) / layout.dp;
  layout.micro_batch = (share + accumulate - 1) / accumulate;
}

void Reader::check_layout() {
  plan::Case run = request_.run;
  if (request_.parameters > 0) {  // no shape that could be cut wrongly
    run.model.dense.num_attention_heads = run.model.dense.num_key_value_heads = run.layout.tp;
    run.model.dense.intermediate_size = run.layout.tp;
    run.model.dense.num_hidden_layers = run.layout.stages();
  }
  for (Violation violation :
       plan::mistakes(run.model, run.recipe, run.cluster, run.layout, plan::UnevenBatches::taken)) {
    violation.where = "--" + violation.key;
    violations_.push_back(std::move(violation));
  }
}

PlanRequest Reader::read(LayoutFlags how) {
  read_model();
  read_recipe();
  read_cluster();
  read_degrees(how);
  read_pipeline();
  read_batch(how);
  if (violations_.empty() && how == LayoutFlags::complete) check_layout();
  if (violations_.empty()) return std::move(request_);
  throw core::ConfigError(formats::describe(violations_, "plan"));
}

}  // namespace

std::optional<double> scaled_number(std::string_view text) {
  double number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec != std::errc()) return std::nullopt;
  const std::string_view unit(result.ptr,
                              static_cast<size_t>(text.data() + text.size() - result.ptr));
  constexpr std::array<std::pair<std::string_view, double>, 9> kUnits = {{{"", 1},
                                                                          {"k", 1e3},
                                                                          {"K", 1e3},
                                                                          {"M", 1e6},
                                                                          {"m", 1e6},
                                                                          {"B", 1e9},
                                                                          {"b", 1e9},
                                                                          {"G", 1e9},
                                                                          {"T", 1e12}}};
  for (const auto& [name, factor] : kUnits) {
    if (unit == name && number > 0 && std::isfinite(number * factor)) return number * factor;
  }
  return std::nullopt;
}

void PlanArgs::add_to(CLI::App& verb) {
  for (const Flag& flag : kFlags) {
    const std::string dashed = std::string("--") + flag.name;
    std::string underscored = std::string("--") + flag.name;
    std::replace(underscored.begin() + 2, underscored.end(), '-', '_');
    const std::string names = dashed == underscored ? dashed : dashed + "," + underscored;
    CLI::Option* option = verb.add_option(names, values_[flag.name], flag.about);
    option->type_name(flag.type)->group(flag.group);
    if (std::string_view(flag.name) == "sp") option->expected(0, 1)->default_str("1");
  }
}

PlanRequest PlanArgs::read(LayoutFlags layout) const {
  return Reader(values_).read(layout);
}

bool PlanArgs::any() const {
  return std::any_of(values_.begin(), values_.end(),
                     [](const auto& entry) { return !entry.second.empty(); });
}

}  // namespace tessera::cli
