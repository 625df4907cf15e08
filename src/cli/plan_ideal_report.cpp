#include "cli/plan_ideal_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "plan/text.h"

namespace tessera::cli {

namespace {

using Json = nlohmann::ordered_json;
using plan::Ideal;
using plan::IdealTransfer;

/// At least three digits, two of them behind the point: "0.822 GB", "1103.61 GB", "16.00 TB".
std::string gb(double bytes) {
  if (bytes < 10e9) return fmt::format("{:.3f} GB", bytes / 1e9);
  if (bytes < 10e12) return fmt::format("{:.2f} GB", bytes / 1e9);
  return fmt::format("{:.2f} TB", bytes / 1e12);
}

std::string both_links(const IdealTransfer& transfer) {
  return fmt::format("{} inside a node, {} between nodes", plan::time_text(transfer.intra_s),
                     plan::time_text(transfer.inter_s));
}

std::string parameters_text(const PlanRequest& request, const Ideal& ideal) {
  std::string text = fmt::format("parameters, without norms  {:.0f}", ideal.parameters);
  if (request.parameters == 0) {
    const plan::ParameterCounts counts = plan::count_parameters(request.run.model);
    text += fmt::format("  (with norms and biases {})\n  of a layer  {} attention, {} MLP\n",
                        counts.total, counts.attention, counts.mlp);
  } else {
    text += '\n';
  }
  const int64_t parts = request.run.layout.tp * request.run.layout.pp;
  if (parts == 1) return text;
  return text +
         fmt::format("  a GPU holds 1/{} of them, {:.4g}\n", parts, ideal.parameters_per_device);
}

std::string state_text(const Ideal& ideal) {
  const plan::StateBytes& bytes = ideal.bytes;
  const plan::Memory& memory = ideal.memory;
  std::string text =
      fmt::format("state  {:g} bytes a parameter: {:g} weight, {:g} gradient, {:g} optimizer\n",
                  bytes.weight + bytes.gradient + bytes.optimizer, bytes.weight, bytes.gradient,
                  bytes.optimizer);
  text +=
      fmt::format("  of a GPU  {} = {} weights + {} gradients + {} optimizer\n", gb(memory.state()),
                  gb(memory.weights), gb(memory.gradients), gb(memory.optimizer));
  text += fmt::format("  {:.2f} x a GPU of {:.0f} GB; without the gradients' copy {}\n",
                      memory.state() / ideal.capacity_bytes, ideal.capacity_bytes / 1e9,
                      gb(memory.state() - memory.gradients));
  if (ideal.state_floor < ideal.unsharded_state) {
    text += fmt::format(
        "  sharding makes it {:.1f} x smaller; over ever more replicas it stays at "
        "{}\n",
        ideal.unsharded_state / memory.state(), gb(ideal.state_floor));
  }
  const char* verdict = ideal.fits ? "fits" : "does not fit";
  text += memory.activations > 0
              ? fmt::format("activations  {}; with the state {}: {}\n", gb(memory.activations),
                            gb(memory.total()), verdict)
              : fmt::format("  {} before activations, which follow from a shape\n", verdict);
  return text + (ideal.smallest_tp > 0
                     ? fmt::format("  smallest tp whose state fits: {}\n", ideal.smallest_tp)
                     : "  no tp within a node has a state that fits\n");
}

std::string traffic_text(const PlanRequest& request, const Ideal& ideal) {
  const plan::Layout& layout = request.run.layout;
  std::string text;
  if (ideal.dp.bytes > 0) {
    text +=
        fmt::format("dp sends {} a GPU a step, of {} of gradients: {}\n", gb(ideal.dp.bytes),
                    gb(ideal.parameters_per_device * ideal.bytes.gradient), both_links(ideal.dp));
  }
  if (layout.tp > 1 && ideal.tp.bytes > 0) {
    const plan::IdealLayer& layer = ideal.layer;
    const double compute = layer.compute_s;
    text += fmt::format(
        "tp sends {} a GPU a step; of a layer and a micro-batch {}: {}\n"
        "  its compute takes {}, so tp takes {:.2f} of it inside a node, {:.2f} between nodes\n"
        "  a GPU holds {:.4g} of the layer's {:.4g} parameters\n",
        gb(ideal.tp.bytes), plan::bytes_text(layer.all_reduces.bytes),
        both_links(layer.all_reduces), plan::time_text(compute),
        layer.all_reduces.intra_s / compute, layer.all_reduces.inter_s / compute,
        layer.parameters_per_device, layer.parameters);
  }
  if (layout.pp > 1 && ideal.pp.bytes > 0) {
    text += fmt::format("pp sends {} a GPU a step; {} a boundary and micro-batch\n",
                        gb(ideal.pp.bytes), plan::bytes_text(ideal.pp_boundary.bytes));
  }
  return text.empty() ? text : text + '\n';
}

std::string time_text(const PlanRequest& request, const Ideal& ideal) {
  const plan::Recipe& recipe = request.run.recipe;
  const int64_t batch = recipe.global_batch;
  const int64_t share = (batch + request.run.layout.dp - 1) / request.run.layout.dp;
  std::string text =
      fmt::format("a step  {} sequence{} of {} tokens, {} a replica in {} micro-batch{}\n", batch,
                  batch == 1 ? "" : "s", recipe.seq_len, share, ideal.micro_batches,
                  ideal.micro_batches == 1 ? "" : "es");
  text += fmt::format("  {:g} ticks, {:g} of them busy: idle {} of the step, {} of the useful\n",
                      ideal.ticks.step, ideal.ticks.busy,
                      plan::percent_text(ideal.ticks.bubble_fraction()),
                      plan::percent_text(ideal.ticks.bubble_over_useful()));
  text += fmt::format("  {} of compute, {} with the bubble; {:.4g} tokens/s, MFU {}\n",
                      plan::time_text(ideal.time.compute_s), plan::time_text(ideal.time.step_s),
                      ideal.tokens_per_s, plan::percent_text(ideal.mfu));
  if (request.tokens <= 0) return text;
  const TrainingCost cost = training_cost(request, ideal.tokens_per_s);
  return text + fmt::format("{:.4g} tokens  {:.2e} FLOPs, {}, {:.4g} GPU hours, {:.4g} USD\n",
                            request.tokens, 6 * ideal.active * request.tokens,
                            plan::time_text(cost.days * 86400), cost.gpu_hours, cost.usd);
}

Json transfer_json(const IdealTransfer& transfer) {
  return {{"bytes", transfer.bytes},
          {"intra_s", transfer.intra_s},
          {"inter_s", transfer.inter_s},
          {"leaves_node", transfer.leaves_node}};
}

Json memory_json(const Ideal& ideal) {
  const plan::Memory& memory = ideal.memory;
  return {{"weights", memory.weights},
          {"gradients", memory.gradients},
          {"optimizer", memory.optimizer},
          {"activations", memory.activations},
          {"gathered", 0},
          {"communication", 0},
          {"runtime", 0},
          {"state", memory.state()},
          {"total", memory.total()},
          {"state_unsharded", ideal.unsharded_state},
          {"state_floor", ideal.state_floor},
          {"state_without_gradients", memory.state() - memory.gradients},
          {"state_over_gpu_memory", memory.state() / ideal.capacity_bytes}};
}

Json parameters_of(const PlanRequest& request, const Ideal& ideal) {
  const auto whole = [](double number) { return static_cast<int64_t>(number); };
  Json json;
  if (request.parameters > 0) {
    json = {{"total", whole(ideal.parameters)},
            {"without_norms", whole(ideal.parameters)},
            {"matmul", whole(ideal.parameters)},
            {"per_layer", nullptr},
            {"active", whole(ideal.active)}};
  } else {
    json = parameters_json(plan::count_parameters(request.run.model));
  }
  json["per_gpu"] = ideal.parameters_per_device;
  json["parts"] = request.run.layout.tp * request.run.layout.pp;
  return json;
}

/// What an estimate has no keys for.
Json own_json(const Ideal& ideal) {
  const plan::IdealLayer& layer = ideal.layer;
  const auto over_compute = [&](double seconds) {
    return layer.compute_s > 0 ? seconds / layer.compute_s : 0;
  };
  return {
      {"bytes_per_parameter",
       {{"weight", ideal.bytes.weight},
        {"gradient", ideal.bytes.gradient},
        {"optimizer", ideal.bytes.optimizer},
        {"state", ideal.bytes.weight + ideal.bytes.gradient + ideal.bytes.optimizer}}},
      {"smallest_tp_whose_state_fits", ideal.smallest_tp > 0 ? Json(ideal.smallest_tp) : Json()},
      {"gradient_bytes_per_gpu", ideal.parameters_per_device * ideal.bytes.gradient},
      {"communication",
       {{"dp", transfer_json(ideal.dp)},
        {"tp", transfer_json(ideal.tp)},
        {"pp", transfer_json(ideal.pp)},
        {"pp_boundary", transfer_json(ideal.pp_boundary)}}},
      {"layer",
       {{"parameters", layer.parameters},
        {"parameters_per_gpu", layer.parameters_per_device},
        {"tp", transfer_json(layer.all_reduces)},
        {"compute_s", layer.compute_s},
        {"tp_over_compute_intra", over_compute(layer.all_reduces.intra_s)},
        {"tp_over_compute_inter", over_compute(layer.all_reduces.inter_s)}}}};
}

}  // namespace

std::string ideal_text(const PlanRequest& request, const Ideal& ideal, const PlanNotes& notes) {
  return "by the textbook: " + plan_title(request) + '\n' + parameters_text(request, ideal) + '\n' +
         state_text(ideal) + '\n' + traffic_text(request, ideal) + time_text(request, ideal) +
         notes_text(notes);
}

Json ideal_json(const PlanRequest& request, const Ideal& ideal, const PlanNotes& notes) {
  const plan::StepTime& time = ideal.time;
  Json json = case_json(request);
  json.update({{"ideal", true},
               {"parameters", parameters_of(request, ideal)},
               {"memory_bytes_per_gpu", memory_json(ideal)},
               {"gpu_memory_bytes", ideal.capacity_bytes},
               {"fits", ideal.fits},
               {"traffic_bytes_per_gpu_per_step", traffic_json(ideal.traffic)},
               {"pipeline",
                {{"micro_batches", ideal.micro_batches},
                 {"step_ticks", ideal.ticks.step},
                 {"busy_ticks", ideal.ticks.busy},
                 {"bubble_fraction", ideal.ticks.bubble_fraction()},
                 {"bubble_over_useful", ideal.ticks.bubble_over_useful()}}},
               {"time",
                {{"compute_s", time.compute_s},
                 {"tp_exposed_s", 0},
                 {"dp_exposed_s", 0},
                 {"pp_bubble_s", time.pp_bubble_s},
                 {"optimizer_s", 0},
                 {"step_s", time.step_s}}}});
  json.update(own_json(ideal));
  json.update(ending_json(request,
                          {ideal.flops_per_step, 6 * ideal.active * request.tokens, ideal.mfu,
                           ideal.hfu, ideal.tokens_per_s},
                          notes));
  return json;
}

}  // namespace tessera::cli
