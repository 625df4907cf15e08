#include "data/token_format.h"

#include <cstring>
#include <filesystem>

#include "data/file.h"
#include "data/megatron_index.h"

namespace tessera::data {

bool has_llmc_magic(std::string_view bytes) {
  int32_t magic = 0;
  if (bytes.size() < sizeof magic) return false;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic == kTokenFileMagic16 || magic == kTokenFileMagic32 || magic == kEvalFileMagic;
}

DataFormat format_of(const std::string& path) {
  std::error_code error;
  const MegatronPaths megatron = megatron_paths(path);
  if (!std::filesystem::exists(path, error) && std::filesystem::exists(megatron.tokens, error) &&
      std::filesystem::exists(megatron.index, error)) {
    return DataFormat::megatron;
  }
  const core::MappedFile file = open_named(path, "The data file");
  if (has_llmc_magic(file.bytes())) return DataFormat::llmc;
  if (has_megatron_magic(file.bytes()) || path.ends_with(".idx")) return DataFormat::megatron;
  if (!path.ends_with(".bin")) return DataFormat::text;
  if (std::filesystem::is_regular_file(megatron.index, error)) return DataFormat::megatron;
  return DataFormat::nanogpt;
}

}  // namespace tessera::data
