#include "train/summary.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tessera::train {

using nlohmann::ordered_json;

namespace {

/// By rank: category → predicted, and measured where `measured` is there.
ordered_json memory_json(const std::vector<CategoryBytes>& predicted,
                         const std::vector<CategoryBytes>* measured) {
  ordered_json ranks = ordered_json::array();
  for (size_t rank = 0; rank < predicted.size(); ++rank) {
    ordered_json categories;
    for (size_t i = 0; i < predicted[rank].size(); ++i) {
      ordered_json entry = {{"predicted", predicted[rank][i]}};
      if (measured != nullptr) entry["measured"] = (*measured)[rank][i];
      categories[core::name_of(static_cast<core::Category>(i))] = entry;
    }
    ranks.push_back(categories);
  }
  return ranks;
}

std::vector<int64_t> of_axis(const std::vector<AxisBytes>& by_rank, parallel::Axis axis) {
  std::vector<int64_t> bytes;
  for (const AxisBytes& rank : by_rank) bytes.push_back(rank[static_cast<size_t>(axis)]);
  return bytes;
}

/// The rank that sends most stands for all.
int64_t most(const std::vector<int64_t>& by_rank) {
  return by_rank.empty() ? 0 : *std::max_element(by_rank.begin(), by_rank.end());
}

/// Whether the axis is one of the run's: always dp, to which belongs what all ranks agree on.
bool is_used(parallel::Axis axis, const std::vector<AxisBytes>& predicted) {
  return axis == parallel::Axis::dp || most(of_axis(predicted, axis)) > 0;
}

/// Predicted and measured bytes of an axis, and the measured ones by collective, of the rank that
/// sends most.
ordered_json traffic_json(const Summary& s, parallel::Axis axis) {
  const std::vector<int64_t> measured = of_axis(s.bytes_measured(), axis);
  ordered_json by_collective = ordered_json::object();
  const auto most_of = std::max_element(measured.begin(), measured.end());
  for (const comm::TrafficEntry& entry : comm::kTrafficEntries) {
    if (most_of == measured.end()) break;
    const auto rank = static_cast<size_t>(most_of - measured.begin());
    const int64_t bytes = s.traffic_measured[rank][static_cast<size_t>(axis)].*entry.bytes;
    if (bytes > 0) by_collective[entry.name] = bytes;
  }
  return {{"predicted", most(of_axis(s.predicted.bytes_per_step, axis))},
          {"measured", most(measured)},
          {"by_collective", by_collective}};
}

/// By axis: by rank.
ordered_json by_rank_json(const Summary& s) {
  ordered_json json;
  for (const parallel::Axis axis : parallel::kAxes) {
    if (!is_used(axis, s.predicted.bytes_per_step)) continue;
    json[parallel::name_of(axis)] = {{"predicted", of_axis(s.predicted.bytes_per_step, axis)},
                                     {"measured", of_axis(s.bytes_measured(), axis)}};
  }
  return json;
}

ordered_json fractions_json(const Summary& s,
                            const std::array<double, parallel::kNumAxes>& by_axis) {
  ordered_json json;
  for (const parallel::Axis axis : parallel::kAxes) {
    if (!is_used(axis, s.predicted.bytes_per_step)) continue;
    json[parallel::name_of(axis)] = by_axis[static_cast<size_t>(axis)];
  }
  return json;
}

}  // namespace

std::vector<AxisBytes> Summary::bytes_measured() const {
  std::vector<AxisBytes> bytes;
  for (const auto& rank : traffic_measured) {
    AxisBytes& of_rank = bytes.emplace_back();
    for (size_t axis = 0; axis < rank.size(); ++axis) of_rank[axis] = rank[axis].total();
  }
  return bytes;
}

std::string to_json(const Prediction& prediction) {
  ordered_json traffic, by_rank;
  for (const parallel::Axis axis : parallel::kAxes) {
    if (!is_used(axis, prediction.bytes_per_step)) continue;
    const std::vector<int64_t> bytes = of_axis(prediction.bytes_per_step, axis);
    traffic[parallel::name_of(axis)] = {{"predicted", most(bytes)}};
    by_rank[parallel::name_of(axis)] = bytes;
  }
  const ordered_json json = {{"memory_bytes", memory_json(prediction.memory_bytes, nullptr)},
                             {"traffic_bytes_per_step", traffic},
                             {"traffic_bytes_per_step_by_rank", by_rank},
                             {"bubble_fraction", {{"predicted", prediction.bubble_fraction}}},
                             {"flops_per_step", prediction.flops_per_step}};
  return json.dump(2) + "\n";
}

std::string to_json(const Summary& s) {
  ordered_json traffic;
  for (const parallel::Axis axis : parallel::kAxes) {
    if (!is_used(axis, s.predicted.bytes_per_step)) continue;
    traffic[parallel::name_of(axis)] = traffic_json(s, axis);
  }
  ordered_json json = {
      {"steps", s.steps},
      {"stopped_early", s.stopped_early},
      {"loss_first", s.loss_first},
      {"loss_last", s.loss_last},
      {"validation_loss", nullptr},
      {"unigram_entropy", s.unigram_entropy},
      {"tokens_per_s", s.tokens_per_s},
      {"tflops_per_rank", s.tflops_per_rank},
      {"mfu", s.mfu},
      {"train_seconds", s.train_seconds},
      {"world",
       {{"mesh", {{"pp", s.mesh.pp}, {"dp", s.mesh.dp}, {"cp", s.mesh.cp}, {"tp", s.mesh.tp}}},
        {"layout", s.layout},
        {"backend", s.backend},
        {"hosts", s.num_hosts},
        {"isa", s.device}}},
      {"memory_bytes", memory_json(s.predicted.memory_bytes, &s.memory_measured)},
      {"process_memory_bytes", s.process_memory_bytes},
      {"traffic_bytes_per_step", traffic},
      {"traffic_bytes_per_step_by_rank", by_rank_json(s)},
      {"bubble_fraction",
       {{"predicted", s.predicted.bubble_fraction},
        {"simulated", s.bubble_simulated},
        {"measured", s.bubble_measured}}},
      {"exposed_communication_fraction", fractions_json(s, s.exposed_communication_fraction)},
      {"hidden_communication_fraction", fractions_json(s, s.hidden_communication_fraction)},
      {"lost_seconds",
       {{"checkpoint", s.checkpoint_seconds}, {"validation", s.validation_seconds}}},
      {"weights_hash", s.weights_hash},
      {"run_dir", s.run_dir},
      {"last_checkpoint", s.last_checkpoint}};
  if (s.has_validation) json["validation_loss"] = s.validation_loss;
  return json.dump(2);
}

}  // namespace tessera::train
