#pragma once

// The formats in which tokens lie in files. All are little-endian.
//
// llm.c: 256 int32 of header, then the ids.
//   [0] magic, [1] version: 20240520, 1 for uint16 ids; 20240801, 7 for uint32 ids
//   [2] number of tokens; the rest is 0
// llm.c's files stay under 2^31 tokens, and so do those written here: what is longer is cut into
// shards. Where a file is larger all the same, the upper 32 bits of its count are in word [3],
// which is 0 in every file of llm.c's; or [3] is 0 and [2] is what remains of a count that its
// writer let overflow, and the count is taken from the file's size.
//
// nanoGPT: uint16 ids and nothing else.
// Megatron-LM: ids in FILE.bin, their width and the bounds of sequences and documents in FILE.idx
// (megatron_index.h).

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace tessera::data {

enum class DataFormat : uint8_t {
  automatic,  ///< by magic numbers and names; refused where that leaves a doubt
  text,       ///< plain or JSON Lines
  llmc,
  nanogpt,
  megatron,
};

inline constexpr int32_t kTokenFileMagic16 = 20240520;
inline constexpr int32_t kTokenFileMagic32 = 20240801;
inline constexpr int32_t kEvalFileMagic = 20240522;
inline constexpr int32_t kModelFileMagic = 20240326;
inline constexpr uint32_t kTokenFileVersion16 = 1;
inline constexpr uint32_t kTokenFileVersion32 = 7;
inline constexpr int64_t kTokenFileHeaderBytes = 1024;
/// The most that llm.c's int32 count can say.
inline constexpr int64_t kMaxShardTokens = INT32_MAX;
/// uint16 holds ids of vocabularies up to this.
inline constexpr int64_t kMaxVocab16 = 65536;

using TokenFileHeader = std::array<uint32_t, 256>;
static_assert(sizeof(TokenFileHeader) == kTokenFileHeaderBytes);

/// True when `bytes` starts with the magic of one of llm.c's token files or eval files.
bool has_llmc_magic(std::string_view bytes);
/// True when `bytes` starts as Megatron's .idx files do.
bool has_megatron_magic(std::string_view bytes);

/// What the file that a user named holds, by its magic number, its name and the files beside it: an
/// .idx names its .bin, a .bin with Megatron's .idx beside it is Megatron's, any other .bin without
/// magic is taken for nanoGPT's, and everything else is text. PREFIX alone stands for PREFIX.bin
/// with PREFIX.idx. Throws ConfigError for a file that cannot be opened.
DataFormat format_of(const std::string& path);

}  // namespace tessera::data
