#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "formats/hash.h"
#include "kernels/elementwise.h"
#include "parallel/whole_state.h"
#include "train/checkpoint.h"
#include "train/run_folder.h"

namespace tessera::train {

namespace fs = std::filesystem;

namespace {

/// "step-00000100" → 100; −1 for any other name.
int64_t step_of(const fs::path& folder) {
  const std::string name = folder.filename().string();
  constexpr std::string_view prefix = "step-";
  if (name.rfind(prefix, 0) != 0 || name.size() == prefix.size()) return -1;
  int64_t step = 0;
  for (char c : name.substr(prefix.size())) {
    if (c < '0' || c > '9' || step > (int64_t{1} << 50)) return -1;
    step = step * 10 + (c - '0');
  }
  return step;
}

bool is_leftover(const fs::path& folder) {
  return folder.filename().string().find(".tmp") != std::string::npos;
}

}  // namespace

std::vector<fs::path> list_checkpoints(const fs::path& checkpoints) {
  std::vector<fs::path> found;
  std::error_code error;
  if (fs::exists(checkpoints, error)) {
    fs::directory_iterator readable(checkpoints, error);
  }
  if (error) {
    throw core::RunError(fmt::format("cannot read {}: {}", checkpoints.string(), error.message()));
  }
  for (const auto& entry : fs::directory_iterator(checkpoints, error)) {
    if (entry.is_directory(error) && step_of(entry.path()) >= 0) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end(),
            [](const fs::path& a, const fs::path& b) { return step_of(a) < step_of(b); });
  return found;
}

fs::path find_checkpoint(const fs::path& path) {
  fs::path folder = fs::absolute(path).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // "run/" is "run"
  std::error_code ignored;
  if (fs::exists(folder / "manifest.json", ignored)) return folder;
  std::vector<fs::path> found = list_checkpoints(RunFolder{folder}.checkpoints());
  while (!found.empty() && !fs::exists(found.back() / "manifest.json", ignored)) found.pop_back();
  if (!found.empty()) return found.back();
  throw core::ConfigError(fmt::format(
      "{} is neither a checkpoint (it has no manifest.json) nor a run folder with a complete "
      "checkpoint (in checkpoints/); nor is it a Hugging Face folder (it has no config.json)",
      path.string()));
}

void prune_checkpoints(const fs::path& checkpoints, int64_t keep, int64_t step) {
  std::error_code error;
  std::vector<fs::path> leftovers;
  for (const auto& entry : fs::directory_iterator(checkpoints, error)) {
    if (is_leftover(entry.path())) leftovers.push_back(entry.path());
  }
  for (const fs::path& leftover : leftovers) fs::remove_all(leftover, error);
  if (keep <= 0) return;
  std::vector<fs::path> found = list_checkpoints(checkpoints);
  while (!found.empty() && step_of(found.back()) > step) found.pop_back();
  for (size_t i = 0; i + static_cast<size_t>(keep) < found.size(); ++i) {
    fs::remove_all(found[i], error);
  }
}

std::string weights_hash(const parallel::ModelState& state, parallel::MeshGroups& groups) {
  formats::Xxh3 hash;
  parallel::visit_whole(state, groups, parallel::StateKind::master,
                        [&](const account::Parameter&, core::ConstView weights) {
                          if (weights.dtype == core::DType::f32) {
                            return hash.update(weights.data, weights.bytes());
                          }
                          std::vector<float> wide(static_cast<size_t>(weights.elements()));
                          const core::View values{wide.data(), core::DType::f32, weights.shape};
                          kernels::cast(values, weights);  // frozen bf16
                          hash.update(values.data, values.bytes());
                        });
  return groups.world().rank() == 0 ? hash.hex() : "";
}

}  // namespace tessera::train
