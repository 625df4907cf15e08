#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "core/error.h"
#include "train/checkpoint.h"
#include "train/checkpoint_reader.h"

namespace tessera::train {

namespace fs = std::filesystem;
using core::View;
using parallel::StateKind;

namespace {

CheckpointHeader header_of(const formats::Manifest& manifest) {
  return {manifest.step, manifest.sampler_seed, manifest.samples, manifest.config, manifest.layout};
}

std::string shape_text(const core::Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.dims(); ++i) text += fmt::format("{}{}", i > 0 ? ", " : "", shape[i]);
  return text + "]";
}

/// The best values there are for a parameter's master: its master, or fp32 weights, or bf16 ones.
const formats::ManifestTensor* find_values(const CheckpointReader& reader,
                                           const std::string& name) {
  const formats::ManifestTensor* master = reader.find(name, StateKind::master);
  return master != nullptr ? master : reader.find(name, StateKind::weights);
}

/// Whether a parameter may be missing and keeps its initial values: an adapter that training is to
/// begin with.
bool starts_fresh(const account::Parameter& parameter, LoadWhat what) {
  return what == LoadWhat::base && parameter.is_adapter();
}

/// Everything that stands in the way of loading, so that it can be told at once.
std::vector<std::string> find_obstacles(const CheckpointReader& reader,
                                        const account::ParameterTable& table, LoadWhat what) {
  std::vector<std::string> obstacles;
  std::map<std::string, bool> known;
  for (const account::Parameter& parameter : table.parameters) {
    known[parameter.name] = true;
    const formats::ManifestTensor* values = find_values(reader, parameter.name);
    const bool fresh = values == nullptr && starts_fresh(parameter, what);
    if (fresh) continue;
    if (values == nullptr) {
      obstacles.push_back(parameter.name + " is missing");
    } else if (!(values->shape == parameter.whole)) {
      obstacles.push_back(fmt::format("{} is {} in the checkpoint and {} in the model",
                                      parameter.name, shape_text(values->shape),
                                      shape_text(parameter.whole)));
    } else if (what == LoadWhat::everything && parameter.trainable) {
      for (StateKind kind : {StateKind::m, StateKind::v}) {
        const formats::ManifestTensor* moment = reader.find(parameter.name, kind);
        if (moment != nullptr && moment->shape == parameter.whole) continue;
        obstacles.push_back(fmt::format("the optimizer's {} of {} is missing or of another shape",
                                        name_of(kind), parameter.name));
      }
    }
  }
  for (const auto& entry : reader.manifest().tensors) {
    if (known.count(entry.first) == 0) {
      obstacles.push_back(entry.first + " is in the checkpoint but not in the model");
    }
  }
  return obstacles;
}

void refuse(const fs::path& folder, const std::vector<std::string>& obstacles) {
  constexpr size_t kShown = 12;
  std::string text = fmt::format("{} does not fit the model of this config:", folder.string());
  for (size_t i = 0; i < obstacles.size() && i < kShown; ++i) text += "\n  " + obstacles[i];
  if (obstacles.size() > kShown) text += fmt::format("\n  and {} more", obstacles.size() - kShown);
  const bool adapters = std::any_of(obstacles.begin(), obstacles.end(), [](const auto& obstacle) {
    return obstacle.find(".lora_") != std::string::npos;
  });
  throw core::ConfigError(
      text + (adapters ? "\nUse the [lora] section that it was trained with (its config.toml), or "
                         "`tessera checkpoint convert --to hf`, which adds adapters to the weights"
                       : "\nUse the [model] section that it was trained with (its config.toml)"));
}

}  // namespace

CheckpointHeader read_checkpoint_header(const fs::path& folder) {
  return header_of(CheckpointReader(folder).manifest());
}

void verify_checkpoint(const fs::path& folder) {
  CheckpointReader(folder).verify();
}

CheckpointWeights::CheckpointWeights(const fs::path& folder, const account::ParameterTable& table)
    : reader_(std::make_shared<CheckpointReader>(folder)) {
  reader_->verify();
  const std::vector<std::string> obstacles = find_obstacles(*reader_, table, LoadWhat::weights);
  if (!obstacles.empty()) refuse(folder, obstacles);
}

void CheckpointWeights::read(const account::Parameter& parameter, View out) const {
  reader_->read(*find_values(*reader_, parameter.name), parameter, {0, parameter.elements()},
                out.reshaped({out.elements()}));
}

CheckpointHeader load_checkpoint(const fs::path& folder, const spec::RunConfig& config,
                                 parallel::ModelState& state, LoadWhat what,
                                 const VerifyShare& share) {
  CheckpointReader reader(folder);
  reader.verify(share.rank, share.ranks);
  const std::vector<std::string> obstacles =
      find_obstacles(reader, account::parameter_table(config.model, config.lora), what);
  if (!obstacles.empty()) refuse(folder, obstacles);

  for (const account::Parameter& parameter : state.table().parameters) {
    const formats::ManifestTensor* values = find_values(reader, parameter.name);
    const parallel::ElementRange range = state.owned_range(parameter);
    if (values == nullptr || range.count == 0) continue;
    reader.read(*values, parameter, range, state.owned(StateKind::master, parameter));
    if (what != LoadWhat::everything || !parameter.trainable) continue;
    for (StateKind kind : {StateKind::m, StateKind::v}) {
      reader.read(*reader.find(parameter.name, kind), parameter, range,
                  state.owned(kind, parameter));
    }
  }
  state.refresh_weights_from_master();
  return header_of(reader.manifest());
}

}  // namespace tessera::train
