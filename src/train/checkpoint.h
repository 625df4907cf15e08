#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "comm/communicator.h"
#include "parallel/model_state.h"

// A checkpoint is a folder: manifest.json, which says what is where, and safetensors files. Any
// layout loads any checkpoint. It appears whole or not at all: everything is written and flushed
// under a temporary name, and the folder is renamed last.

namespace tessera::train {

using Notice = std::function<void(const std::string&)>;

/// What a checkpoint says about the run that it belongs to.
struct CheckpointHeader {
  int64_t step = 0;  ///< optimizer steps done
  uint64_t sampler_seed = 0;
  int64_t samples = 0;  ///< samples of the global order consumed
  std::string config;   ///< the resolved config, TOML
  std::string layout;   ///< "dp=4", for people
};

/// Saves to `folder`, all ranks together: parameter i of the table is written by rank i mod N, so
/// that no rank waits while another writes alone. Throws RunError on every rank when one of them
/// failed (a full disk, for instance); the temporary folder is removed, and every other checkpoint
/// is as it was.
void save_checkpoint(const std::filesystem::path& folder, const parallel::ModelState& state,
                     comm::Communicator& comm, const CheckpointHeader& header);

/// The complete checkpoint with the highest step in a run's checkpoints folder; passes over
/// incomplete or damaged ones and says so. nullopt when there is none.
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& checkpoints,
                                                       const Notice& notice);

/// Every file's size and checksum against the manifest. Throws RunError naming what differs.
void verify_checkpoint(const std::filesystem::path& folder);

/// Reads the header alone.
CheckpointHeader read_checkpoint_header(const std::filesystem::path& folder);

enum class LoadWhat : uint8_t {
  everything,  ///< weights, masters and moments: to continue
  weights      ///< weights (and masters from them): to start something new
};

/// Loads a checkpoint, whatever layout wrote it. Throws RunError that lists every tensor that is
/// missing, unknown or of another shape, or says that a file is damaged.
CheckpointHeader load_checkpoint(const std::filesystem::path& folder, parallel::ModelState& state,
                                 LoadWhat what);

/// Removes all but the newest `keep` complete checkpoints (0: keeps all), and leftovers of saves
/// that were killed.
void prune_checkpoints(const std::filesystem::path& checkpoints, int64_t keep);

/// XXH3-128 of the canonical fp32 weights (masters) in table order: equal for every layout that
/// holds the same model.
std::string weights_hash(const parallel::ModelState& state);

}  // namespace tessera::train
