#include "cli/plan_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "plan/text.h"
#include "plan/ticks.h"

namespace tessera::cli {

namespace {

using Json = nlohmann::ordered_json;
using plan::Case;
using plan::Estimate;
using plan::Memory;

std::string gb(double bytes) {
  return fmt::format("{:>10.2f} GB", bytes / 1e9);
}

std::string memory_text(const Case& run, const Estimate& estimate) {
  const Memory& memory = estimate.memory[estimate.worst_rank];
  std::string text = "memory of a GPU";
  if (estimate.memory.size() > 1) {
    text += fmt::format(", pipeline rank {} holding most", estimate.worst_rank);
  }
  const auto line = [&](const char* name, double bytes, const std::string& note = {}) {
    text += fmt::format("  {:<16}{}{}\n", name, gb(bytes), note.empty() ? "" : "  " + note);
  };
  text += '\n';
  line("weights", memory.weights);
  line("gradients", memory.gradients);
  line("optimizer", memory.optimizer,
       fmt::format("state {:.2f} GB with weights and gradients", memory.state() / 1e9));
  line("activations", memory.activations,
       memory.logits > 0 ? fmt::format("of them {:.2f} GB logits", memory.logits / 1e9) : "");
  line("gathered", memory.gathered);
  line("communication", memory.communication);
  line("runtime", memory.runtime);
  const auto room = static_cast<double>(run.cluster.device.memory_bytes);
  line("total", memory.total(),
       fmt::format("of {:.2f} GB: {}", room / 1e9, estimate.fits ? "fits" : "does not fit"));
  return text;
}

std::string traffic_text(const plan::Traffic& traffic) {
  std::string text;
  for (const auto& [axis, bytes] : {std::pair{"dp", traffic.dp},
                                    {"tp", traffic.tp},
                                    {"pp", traffic.pp},
                                    {"cp", traffic.cp},
                                    {"ep", traffic.ep}}) {
    if (bytes > 0) text += fmt::format("  {:<16}{}\n", axis, gb(bytes));
  }
  return text.empty() ? text : "traffic of the busiest GPU in a step\n" + text + '\n';
}

std::string pipeline_text(const Case& run, const Estimate& estimate) {
  if (run.layout.pp == 1) {
    return fmt::format("no pipeline; a replica takes {} micro-batch{} in a step\n",
                       estimate.micro_batches, estimate.micro_batches == 1 ? "" : "es");
  }
  const plan::Ticks ticks = plan::ticks_of(run.layout, estimate.micro_batches);
  return fmt::format(
      "pipeline of {} stages, {} micro-batches: idle {} of the step's passes\n"
      "  of equal stages {:g} ticks, {:g} of them busy: idle {}\n",
      run.layout.stages(), estimate.micro_batches, plan::percent_text(estimate.bubble_fraction),
      ticks.step, ticks.busy, plan::percent_text(ticks.bubble_fraction()));
}

std::string time_text(const Estimate& estimate) {
  const plan::StepTime& time = estimate.time;
  std::string text = "time of a step\n";
  const auto line = [&](const char* name, double seconds, const char* note = "") {
    if (seconds > 0) {
      text += fmt::format("  {:<16}{:>12}{}\n", name, plan::time_text(seconds), note);
    }
  };
  line("compute", time.compute_s);
  line("  tp waits", time.tp_exposed_s, "  within compute");
  line("  cp waits", time.cp_exposed_s, "  within compute");
  line("  ep waits", time.ep_exposed_s, "  within compute");
  line("pp bubble", time.pp_bubble_s);
  line("dp waits", time.dp_exposed_s);
  line("optimizer", time.optimizer_s);
  line("overhead", time.overhead_s);
  line("step", time.step_s);
  return text + fmt::format("MFU {}, HFU {}, {:.4g} tokens/s\n", plan::percent_text(estimate.mfu),
                            plan::percent_text(estimate.hfu), estimate.tokens_per_s);
}

Json memory_json(const Memory& memory) {
  return {{"weights", memory.weights},     {"gradients", memory.gradients},
          {"optimizer", memory.optimizer}, {"activations", memory.activations},
          {"gathered", memory.gathered},   {"communication", memory.communication},
          {"runtime", memory.runtime},     {"state", memory.state()},
          {"total", memory.total()},       {"logits", memory.logits}};
}

Json warnings_json(const std::vector<plan::Warning>& warnings) {
  Json list = Json::array();
  for (const plan::Warning& warning : warnings) list.push_back(warning.text);
  return list;
}

}  // namespace

Json reasons_json(const std::vector<plan::Reason>& why) {
  Json list = Json::array();
  for (const plan::Reason& reason : why) {
    list.push_back(
        {{"quantity", reason.quantity}, {"formula", reason.formula}, {"values", reason.values}});
  }
  return list;
}

std::string plan_title(const PlanRequest& request) {
  const plan::Cluster& cluster = request.run.cluster;
  const int64_t nodes = (request.gpus + cluster.devices_per_node - 1) / cluster.devices_per_node;
  return fmt::format("{} on {} x {} ({} node{} of {}), {}\n", request.run.model.name, request.gpus,
                     cluster.device.name, nodes, nodes == 1 ? "" : "s", cluster.devices_per_node,
                     plan::to_string(request.run.layout));
}

TrainingCost training_cost(const PlanRequest& request, double tokens_per_s) {
  TrainingCost cost;
  if (request.tokens <= 0 || tokens_per_s <= 0) return cost;
  const double hours = request.tokens / tokens_per_s / 3600;
  cost.days = hours / 24;
  cost.gpu_hours = hours * static_cast<double>(request.gpus);
  cost.usd = cost.gpu_hours * request.run.cluster.usd_per_device_hour;
  return cost;
}

std::string notes_text(const PlanNotes& notes) {
  std::string text = notes.warnings.empty() && notes.not_run_yet.empty() ? "" : "\n";
  for (const plan::Warning& warning : notes.warnings) text += "warning: " + warning.text + '\n';
  if (!notes.not_run_yet.empty()) {
    text += fmt::format("planned, not run by this version's engine: {}\n",
                        fmt::join(notes.not_run_yet, ", "));
  }
  for (const plan::Reason& reason : notes.why) {
    text += fmt::format("\n{}\n  = {}\n  = {}\n", reason.quantity, reason.formula, reason.values);
  }
  if (!notes.not_modelled.empty()) text += "\nnot modelled\n";
  for (const std::string& what : notes.not_modelled) text += "  " + what + '\n';
  return text;
}

std::string plan_text(const PlanRequest& request, const Estimate& estimate,
                      const PlanNotes& notes) {
  const plan::ParameterCounts counts = plan::count_parameters(request.run.model);
  std::string text = plan_title(request);
  text += fmt::format("{:.4g} parameters, {:.4g} of them active\n\n",
                      static_cast<double>(counts.total), static_cast<double>(counts.active));
  text += memory_text(request.run, estimate) + '\n';
  text += traffic_text(estimate.traffic);
  text += pipeline_text(request.run, estimate) + '\n';
  text += time_text(estimate);
  if (request.tokens > 0) {
    const TrainingCost cost = training_cost(request, estimate.tokens_per_s);
    text += fmt::format("{:.4g} tokens: {}, {:.4g} GPU hours, {:.4g} USD at {:g} an hour\n",
                        request.tokens, plan::time_text(cost.days * 86400), cost.gpu_hours,
                        cost.usd, request.run.cluster.usd_per_device_hour);
  }
  return text + notes_text(notes);
}

Json case_json(const PlanRequest& request) {
  const Case& run = request.run;
  return {
      {"model", run.model.name},
      {"cluster", run.cluster.name},
      {"gpus", request.gpus},
      {"nodes", (request.gpus + run.cluster.devices_per_node - 1) / run.cluster.devices_per_node},
      {"layout", plan::to_string(run.layout)},
      {"global_batch", run.recipe.global_batch},
      {"sequences_per_replica", (run.recipe.global_batch + run.layout.dp - 1) / run.layout.dp},
      {"seq_len", run.recipe.seq_len},
      {"stack", run.stack.name}};
}

Json parameters_json(const plan::ParameterCounts& counts) {
  const int64_t mlp = counts.mlp > 0 ? counts.mlp : counts.shared_experts;
  return {{"total", counts.total},   {"without_norms", counts.without_norms},
          {"matmul", counts.matmul}, {"per_layer", counts.attention + mlp},
          {"active", counts.active}, {"attention_per_layer", counts.attention},
          {"mlp_per_layer", mlp}};
}

Json traffic_json(const plan::Traffic& traffic) {
  return {{"dp", traffic.dp},
          {"tp", traffic.tp},
          {"pp", traffic.pp},
          {"cp", traffic.cp},
          {"ep", traffic.ep}};
}

Json step_json(const plan::StepTime& time) {
  return {{"compute_s", time.compute_s},
          {"tp_exposed_s", time.tp_exposed_s},
          {"cp_exposed_s", time.cp_exposed_s},
          {"ep_exposed_s", time.ep_exposed_s},
          {"dp_exposed_s", time.dp_exposed_s},
          {"pp_bubble_s", time.pp_bubble_s},
          {"optimizer_s", time.optimizer_s},
          {"overhead_s", time.overhead_s},
          {"step_s", time.step_s}};
}

Json ending_json(const PlanRequest& request, const PlanRates& rates, const PlanNotes& notes) {
  const TrainingCost cost = training_cost(request, rates.tokens_per_s);
  const auto of_tokens = [&](double number) { return request.tokens > 0 ? Json(number) : Json(); };
  return {{"flops_per_step", rates.flops_per_step},
          {"flops_total", of_tokens(rates.flops_total)},
          {"mfu", rates.mfu},
          {"hfu", rates.hfu},
          {"tokens_per_s", rates.tokens_per_s},
          {"train_days", of_tokens(cost.days)},
          {"gpu_hours", of_tokens(cost.gpu_hours)},
          {"cost_usd", of_tokens(cost.usd)},
          {"warnings", warnings_json(notes.warnings)},
          {"not_run_yet", notes.not_run_yet},
          {"why", reasons_json(notes.why)},
          {"not_modelled", notes.not_modelled}};
}

Json plan_json(const PlanRequest& request, const Estimate& estimate, const PlanNotes& notes) {
  const Case& run = request.run;
  const plan::Ticks ticks = plan::ticks_of(run.layout, estimate.micro_batches);
  Json ranks = Json::array();
  for (const Memory& memory : estimate.memory) ranks.push_back(memory_json(memory));
  const double tokens_of_step =
      static_cast<double>(run.recipe.global_batch) * static_cast<double>(run.recipe.seq_len);
  Json json = case_json(request);
  json.update(
      {{"parameters", parameters_json(plan::count_parameters(run.model))},
       {"memory_bytes_per_gpu", memory_json(estimate.memory[estimate.worst_rank])},
       {"memory_bytes_by_pipeline_rank", ranks},
       {"worst_pipeline_rank", estimate.worst_rank},
       {"gpu_memory_bytes", run.cluster.device.memory_bytes},
       {"fits", estimate.fits},
       {"traffic_bytes_per_gpu_per_step", traffic_json(estimate.traffic)},
       {"pipeline",
        {{"micro_batches", estimate.micro_batches},
         {"step_ticks", ticks.step},
         {"busy_ticks", ticks.busy},
         {"bubble_fraction", estimate.bubble_fraction},
         {"bubble_over_useful", estimate.bubble_fraction / (1 - estimate.bubble_fraction)}}},
       {"time", step_json(estimate.time)}});
  json.update(
      ending_json(request,
                  {estimate.model_flops, estimate.model_flops * request.tokens / tokens_of_step,
                   estimate.mfu, estimate.hfu, estimate.tokens_per_s},
                  notes));
  return json;
}

}  // namespace tessera::cli
