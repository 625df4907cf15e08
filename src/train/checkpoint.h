#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "parallel/mesh_groups.h"
#include "parallel/model_state.h"

// A checkpoint is a folder: manifest.json, which says what is where, and safetensors files. Any
// layout loads any checkpoint. It appears whole or not at all: everything is written and flushed
// under a temporary name, and the folder is renamed last.

namespace tessera::train {

class CheckpointReader;

/// What a checkpoint says about the run that it belongs to.
struct CheckpointHeader {
  int64_t step = 0;  ///< optimizer steps done
  uint64_t sampler_seed = 0;
  int64_t samples = 0;  ///< samples of the global order consumed
  std::string config;   ///< the resolved config, TOML
  std::string layout;   ///< "dp=4", for people
};

/// Saves to `folder`, all ranks together: each writes what it owns to a file of its own, straight
/// from memory, and what several own is written by one of them, in turns. Throws RunError on every
/// rank when one of them failed (a full disk, for instance); the temporary folder is removed, and
/// every other checkpoint is as it was.
void save_checkpoint(const std::filesystem::path& folder, const parallel::ModelState& state,
                     parallel::MeshGroups& groups, const CheckpointHeader& header);

/// Reads the header alone. Throws RunError.
CheckpointHeader read_checkpoint_header(const std::filesystem::path& folder);

/// Every file's size and checksum against the manifest. Throws RunError naming what differs.
void verify_checkpoint(const std::filesystem::path& folder);

enum class LoadWhat : uint8_t {
  everything,  ///< masters and moments too: to continue
  weights,     ///< the best weights there are, moments 0
  base         ///< the same to start a training: adapters that are missing stay as they are
};

/// Of a load that several ranks take part in: each verifies the checksums of every `ranks`-th file,
/// and all have to learn whether one of them found something.
struct VerifyShare {
  int64_t rank = 0;
  int64_t ranks = 1;
};

/// Loads what this rank owns of config's model from a checkpoint, whatever layout and precision
/// wrote it, after verifying it. Weights that are whole on every rank have then to be shared
/// (Replica). Throws RunError that says what is damaged; ConfigError that lists every tensor that
/// is missing, unknown or of another shape than the model's.
CheckpointHeader load_checkpoint(const std::filesystem::path& folder, const spec::RunConfig& config,
                                 parallel::ModelState& state, LoadWhat what,
                                 const VerifyShare& share = {});

/// The weights of a checkpoint, one parameter at a time, without a state to hold them all. A copy
/// shares the open files.
class CheckpointWeights {
 public:
  /// Verifies the files, and that they hold the parameters of `table` and no others. Throws as
  /// load_checkpoint does.
  CheckpointWeights(const std::filesystem::path& folder, const account::ParameterTable& table);
  /// Fills `out`, of the parameter's shape, with the best values there are, in out's dtype.
  void read(const account::Parameter& parameter, core::View out) const;

 private:
  std::shared_ptr<CheckpointReader> reader_;
};

/// The checkpoints of a run by step, ascending, whether complete or not; none where there is no
/// such folder. Throws RunError when it cannot be read.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& checkpoints);

/// The checkpoint that a path of the user's means: a checkpoint folder itself, or of a run folder
/// the newest whose manifest is there. Throws ConfigError when it is neither.
std::filesystem::path find_checkpoint(const std::filesystem::path& path);

/// Removes all but the newest `keep` checkpoints up to `step`, the one just saved (0: keeps all),
/// and what killed saves left. Later steps belong to a future that was given up; they do not count.
void prune_checkpoints(const std::filesystem::path& checkpoints, int64_t keep, int64_t step);

/// XXH3-128, in hexadecimal, of the canonical fp32 weights (the masters) in table order: equal for
/// every layout that holds the same model. All ranks call it together; rank 0 alone learns it, and
/// the others get an empty text.
std::string weights_hash(const parallel::ModelState& state, parallel::MeshGroups& groups);

}  // namespace tessera::train
