#include "cli/plan_args.h"

#include <algorithm>
#include <array>
#include <optional>

#include "cli/cluster_file.h"
#include "cli/flag_reader.h"
#include "cli/plan_constants.h"
#include "cli/plan_model.h"
#include "core/error.h"
#include "formats/config_io.h"
#include "spec/nearest.h"
#include "spec/options.h"
#include "spec/text.h"

namespace tessera::cli {

namespace {

using spec::Violation;

/// Keys of the layout grammar that are called otherwise as flags.
std::string flag_of_key(std::string_view key) {
  if (key == "v") return "virtual-stages";
  std::string flag(key);
  std::replace(flag.begin(), flag.end(), '_', '-');
  return flag;
}

class Reader : FlagReader {
 public:
  explicit Reader(const std::map<std::string, std::string>& values) : FlagReader(values) {
    read_layout();
  }

  PlanRequest read(LayoutFlags how);

 private:
  void read_layout();
  void read_model();
  void read_recipe();
  void read_cluster();
  void read_degrees(LayoutFlags how);
  void read_pipeline();
  void read_batch(LayoutFlags how);
  void check_layout();

  PlanRequest request_;
};

void Reader::read_layout() {
  for (const auto& [flag, value] : values()) {
    if (!value.empty()) request_.said.insert(flag);
  }
  if (!has("layout")) return;
  constexpr std::array<std::string_view, 13> kKeys = {
      "dp", "tp", "pp",       "cp",         "ep",          "zero",     "shard",
      "sp", "v",  "schedule", "accumulate", "micro_batch", "recompute"};
  for (const std::string_view pair : spec::split_trimmed(text("layout"), ',')) {
    const size_t equals = pair.find('=');
    const std::string_view key = spec::trimmed(pair.substr(0, equals));
    if (std::find(kKeys.begin(), kKeys.end(), key) == kKeys.end() ||
        equals == std::string_view::npos) {
      const std::string_view nearest = spec::nearest_name(key, {kKeys.begin(), kKeys.end()});
      violations().push_back({"layout", std::string(pair), "is not key=value of a key of layouts",
                              nearest.empty() ? "tp=8,pp=4,dp=8" : std::string(nearest),
                              "--layout"});
      continue;
    }
    const std::string flag = flag_of_key(key);
    const std::string value(spec::trimmed(pair.substr(equals + 1)));
    if (has(flag) && text(flag) != value) {
      add(flag, "is said twice: --layout has " + std::string(pair), "one of the two");
    }
    set(flag, value);
    request_.said.insert(flag);
  }
}

void Reader::read_model() {
  request_.parameters = number("params", "7e9 or 7B", 1);
  if (has("model") && has("params")) {
    add("params", "is for a model without a shape, and --model names one", "one of the two");
  } else if (has("model")) {
    request_.run.model = cli::read_model(text("model"), violations());
  } else if (has("params")) {
    request_.run.model.name = text("params") + " parameters";
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
  request_.tokens = number("tokens", "2e12 or 2T", 1);
  const spec::ModelConfig& config = request_.run.model.dense;
  const bool shaped = request_.parameters == 0;
  const int64_t reach = shaped ? std::min<int64_t>(4096, spec::longest_sequence(config)) : 4096;
  recipe.seq_len = count("seq-len", reach, 1, int64_t{1} << 30);
  const bool learned = config.architecture == spec::Architecture::gpt2;
  if (has("model") && violations().empty() && learned &&
      recipe.seq_len > spec::longest_sequence(config)) {
    add("seq-len", "is beyond the positions that the model has learned",
        std::to_string(spec::longest_sequence(config)));
  }
}

void Reader::read_cluster() {
  plan::Cluster& cluster = request_.run.cluster;
  cluster = cli::read_cluster(has("cluster") ? text("cluster") : "h100-80g", violations());
  if (has("links")) read_links(text("links"), cluster, violations());
  cluster.devices_per_node = count("gpus-per-node", cluster.devices_per_node, 1, 1 << 20);
  if (has("intra-bandwidth")) {
    cluster.intra.bytes_per_s = number("intra-bandwidth", "450e9", kLeastRate);
  }
  if (has("inter-bandwidth")) {
    cluster.inter.bytes_per_s = number("inter-bandwidth", "50e9", kLeastRate);
  }
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
  const bool open = !has("dp") || text("dp") == "-1";
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
  const bool interleaves = has("virtual-stages") && text("virtual-stages") != "1";
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
  for (const std::string_view part : spec::split_trimmed(text("layers-per-stage"), ',')) {
    const std::optional<int64_t> blocks = whole_number(part);
    if (!blocks || *blocks < 0) {
      return add("layers-per-stage", "is no list of whole numbers", "9,8,8,7");
    }
    layout.layers_per_stage.push_back(*blocks);
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
  request_.tuned_batch = count("tuned-batch", 0, 1, int64_t{1} << 30);
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
       plan::mistakes(run.model, run.recipe, run.layout, plan::UnevenBatches::taken)) {
    violation.where = "--" + violation.key;
    violations().push_back(std::move(violation));
  }
}

PlanRequest Reader::read(LayoutFlags how) {
  request_.constants = read_constants(has("constants") ? text("constants") : "");
  read_model();
  read_recipe();
  read_cluster();
  read_degrees(how);
  read_pipeline();
  read_batch(how);
  if (violations().empty() && how == LayoutFlags::complete) check_layout();
  if (violations().empty()) return std::move(request_);
  throw core::ConfigError(formats::describe(violations(), "plan"));
}

}  // namespace

PlanRequest PlanArgs::read(LayoutFlags layout) const {
  return Reader(values_).read(layout);
}

bool PlanArgs::any_but(const std::set<std::string>& flags) const {
  return std::any_of(values_.begin(), values_.end(), [&](const auto& entry) {
    return !entry.second.empty() && !flags.contains(entry.first);
  });
}

std::string PlanArgs::given(const std::string& flag) const {
  const auto found = values_.find(flag);
  return found == values_.end() ? "" : found->second;
}

}  // namespace tessera::cli
