#include "formats/hf_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "formats/strict_json.h"

namespace tessera::formats {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kSingle = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// Names of the folder's files that end so, sorted.
std::vector<std::string> files_ending(const fs::path& folder, const std::string& ending) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(ending)) found.push_back(name);
  }
  std::sort(found.begin(), found.end());
  return found;
}

[[noreturn]] void refuse_without_weights(const std::string& folder) {
  const std::vector<std::string> pickles = files_ending(folder, ".bin");
  const std::vector<std::string> others = files_ending(folder, ".safetensors");
  if (!pickles.empty()) {
    throw core::ConfigError(
        fmt::format("{} has its weights in {} alone, PyTorch's pickles, which run code when they "
                    "are opened and "
                    "are not read here. Convert it once with transformers: "
                    "AutoModelForCausalLM.from_pretrained(FOLDER).save_pretrained(NEW_FOLDER)",
                    folder, pickles.front()));
  }
  throw core::ConfigError(
      fmt::format("{} has neither {} nor {}{}", folder, kSingle, kIndex,
                  others.empty() ? "" : fmt::format("; {} alone is not known", others.front())));
}

/// weight_map of an index: tensor → name of a file in the folder itself.
std::map<std::string, std::string> read_index(const std::string& path) {
  const json index = read_json_object(path);
  const auto map = index.find("weight_map");
  if (map == index.end() || !map->is_object()) {
    throw core::ConfigError(path + ": it has no \"weight_map\" of tensors to files");
  }
  std::map<std::string, std::string> files;
  for (const auto& item : map->items()) {
    const std::string name =
        item.value().is_string() ? item.value().get<std::string>() : std::string();
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
      throw core::ConfigError(fmt::format("{}: {} is in {}, which is not a file of this folder",
                                          path, item.key(), item.value().dump()));
    }
    files[item.key()] = name;
  }
  return files;
}

/// Opens one shard and checks it against what the index says it has.
void add_shard(const std::string& folder, const std::string& name,
               const std::map<std::string, std::string>& index, HfShards& shards) {
  const fs::path path = fs::path(folder) / name;
  const auto count = std::count_if(index.begin(), index.end(),
                                   [&](const auto& entry) { return entry.second == name; });
  if (!is_file(path)) {
    shards.missing.push_back(
        fmt::format("{} is missing, with {} tensors of the index", path.string(), count));
    return;
  }
  try {
    shards.files.emplace_back(path.string());
  } catch (const core::RunError& error) {
    shards.missing.emplace_back(error.what());
    return;
  }
  const SafetensorsFile& file = shards.files.back();
  for (const SafetensorsEntry& entry : file.entries()) {
    const auto place = index.find(entry.name);
    if (place != index.end() && place->second == name) {
      shards.tensors[entry.name] = {&file, &entry};
      continue;
    }
    shards.missing.push_back(
        place == index.end() ? fmt::format("{} is in {}, but not in the index", entry.name, name)
                             : fmt::format("{} is in {}, and the index has it in {}", entry.name,
                                           name, place->second));
  }
  for (const auto& entry : index) {
    if (entry.second == name && file.find(entry.first) == nullptr) {
      shards.missing.push_back(
          fmt::format("{} is not in {}, where the index has it", entry.first, name));
    }
  }
}

HfShards open_indexed(const std::string& folder) {
  HfShards shards;
  const auto index = read_index((fs::path(folder) / kIndex).string());
  std::set<std::string> names;
  for (const auto& entry : index) {
    names.insert(entry.second);
    shards.listed.push_back(entry.first);
  }
  shards.files.reserve(names.size());  // entries point into them
  for (const std::string& name : names) add_shard(folder, name, index, shards);
  std::vector<std::string> strays;
  for (const std::string& name : files_ending(folder, ".safetensors")) {
    if (names.count(name) == 0) strays.push_back(name);
  }
  if (!strays.empty()) {
    shards.notes.push_back(
        fmt::format("not read, as the index does not name them: {}", fmt::join(strays, ", ")));
  }
  return shards;
}

HfShards open_single(const std::string& folder) {
  HfShards shards;
  const fs::path path = fs::path(folder) / kSingle;
  shards.files.reserve(1);
  try {
    shards.files.emplace_back(path.string());
  } catch (const core::RunError& error) {
    shards.missing.emplace_back(error.what());
    return shards;
  }
  for (const SafetensorsEntry& entry : shards.files.front().entries()) {
    shards.tensors[entry.name] = {&shards.files.front(), &entry};
  }
  if (is_file(fs::path(folder) / kIndex)) {
    shards.notes.push_back(fmt::format("{} is not read: {} has the whole model", kIndex, kSingle));
  }
  return shards;
}

}  // namespace

HfShards open_hf_shards(const std::string& folder) {
  if (is_file(fs::path(folder) / kSingle)) return open_single(folder);
  if (is_file(fs::path(folder) / kIndex)) return open_indexed(folder);
  refuse_without_weights(folder);
}

}  // namespace tessera::formats
