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

/// The rank that sends most stands for all: shares differ by at most a few elements.
int64_t most(const std::vector<int64_t>& by_rank) {
  return by_rank.empty() ? 0 : *std::max_element(by_rank.begin(), by_rank.end());
}

/// Predicted and measured bytes of an axis, and the measured ones by collective, of the rank that
/// sends most.
ordered_json traffic_json(const Summary& s) {
  const std::vector<int64_t> measured = s.dp_bytes_measured();
  ordered_json by_collective = ordered_json::object();
  const auto most_of = std::max_element(measured.begin(), measured.end());
  for (const comm::TrafficEntry& entry : comm::kTrafficEntries) {
    if (most_of == measured.end()) break;
    const int64_t bytes =
        s.dp_traffic_measured[static_cast<size_t>(most_of - measured.begin())].*entry.bytes;
    if (bytes > 0) by_collective[entry.name] = bytes;
  }
  return {{"predicted", most(s.predicted.dp_bytes_per_step)},
          {"measured", most(measured)},
          {"by_collective", by_collective}};
}

}  // namespace

std::vector<int64_t> Summary::dp_bytes_measured() const {
  std::vector<int64_t> bytes;
  for (const comm::Traffic& traffic : dp_traffic_measured) bytes.push_back(traffic.total());
  return bytes;
}

std::string to_json(const Prediction& prediction) {
  const ordered_json json = {
      {"memory_bytes", memory_json(prediction.memory_bytes, nullptr)},
      {"traffic_bytes_per_step", {{"dp", {{"predicted", most(prediction.dp_bytes_per_step)}}}}},
      {"traffic_bytes_per_step_by_rank", prediction.dp_bytes_per_step},
      {"flops_per_step", prediction.flops_per_step}};
  return json.dump(2) + "\n";
}

std::string to_json(const Summary& s) {
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
       {{"mesh", {{"pp", 1}, {"dp", s.world_size}, {"cp", 1}, {"tp", 1}}},
        {"layout", s.layout},
        {"backend", s.backend},
        {"hosts", s.num_hosts},
        {"isa", s.device}}},
      {"memory_bytes", memory_json(s.predicted.memory_bytes, &s.memory_measured)},
      {"process_memory_bytes", s.process_memory_bytes},
      {"traffic_bytes_per_step", {{"dp", traffic_json(s)}}},
      {"traffic_bytes_per_step_by_rank",
       {{"predicted", s.predicted.dp_bytes_per_step}, {"measured", s.dp_bytes_measured()}}},
      {"bubble_fraction", {{"predicted", 0}, {"measured", 0}}},  // there is no pipeline
      {"exposed_communication_fraction", {{"dp", s.exposed_communication_fraction}}},
      {"hidden_communication_fraction", {{"dp", s.hidden_communication_fraction}}},
      {"lost_seconds",
       {{"checkpoint", s.checkpoint_seconds}, {"validation", s.validation_seconds}}},
      {"weights_hash", s.weights_hash},
      {"run_dir", s.run_dir},
      {"last_checkpoint", s.last_checkpoint}};
  if (s.has_validation) json["validation_loss"] = s.validation_loss;
  return json.dump(2);
}

}  // namespace tessera::train
