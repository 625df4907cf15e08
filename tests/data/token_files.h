#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "data/token_file.h"
#include "data/token_writer.h"
#include "support.h"

namespace tessera::data::testing {

using Ids = std::vector<int32_t>;

inline std::string written(const TemporaryFolder& folder, const Ids& ids, int64_t vocab_size) {
  const std::string path = folder / "t.bin";
  TokenFileWriter writer(path, vocab_size);
  writer.append(ids);
  writer.finish();
  return path;
}

/// A file as another program would write it.
inline std::string raw_file(const std::vector<uint32_t>& words, const std::string& body) {
  std::string file(1024, '\0');
  std::memcpy(file.data(), words.data(), words.size() * 4);
  return file + body;
}

inline Ids all_of(const TokenFile& file) {
  Ids ids(static_cast<size_t>(file.num_tokens()));
  file.read(0, ids);
  return ids;
}

}  // namespace tessera::data::testing
