#pragma once

// Megatron-LM's FILE.idx, which says where the sequences and documents of FILE.bin lie:
//   "MMIDIDX\0\0"; u64 version, 1; u8 type of an id; u64 sequences S; u64 D, document bounds
//   i32 length[S], in ids; i64 pointer[S], in bytes of FILE.bin; i64 bound[D], in sequences;
//   and where the data has modes, i8 mode[S].
// Types: 1 uint8, 2 int8, 3 int16, 4 int32, 5 int64, 8 uint16; 6 and 7 are floats.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/file.h"

namespace tessera::data {

/// How an id is stored.
enum class IdType : uint8_t { u8, i8, i16, u16, i32, u32, i64 };
int64_t bytes_of(IdType type);

struct MegatronPaths {
  std::string tokens;  ///< FILE.bin
  std::string index;   ///< FILE.idx
};
/// Both files, of the name of either or of FILE.
MegatronPaths megatron_paths(const std::string& path);

/// A .idx that was checked against its .bin. Sequences are in the order of the index; places are
/// those of the stream that the sequences make one after another, in which a separator may have
/// been added where a document ends (see add_separators).
class MegatronIndex {
 public:
  /// One sequence in the stream and in the .bin.
  struct Sequence {
    int64_t first;   ///< its place in the stream
    int64_t length;  ///< ids of it in the .bin
    int64_t byte;    ///< where they start there
    bool separator;  ///< one was added after it
  };

  /// Throws ConfigError that names `path` and what is wrong: sizes that do not add up are refused
  /// before anything of their size is made. `token_bytes` is the size of the .bin.
  MegatronIndex(const std::string& path, int64_t token_bytes);

  IdType type() const { return type_; }
  int64_t num_tokens() const { return starts_.back(); }
  int64_t num_documents() const { return num_documents_; }
  /// Bytes of the .bin that no sequence has.
  int64_t unread_bytes() const { return unread_bytes_; }

  /// Adds a separator after each document whose last sequence, not empty, `lacks_one` says has
  /// none. Returns how many were added.
  template <class Lacks>
  int64_t add_separators(const Lacks& lacks_one) {
    int64_t added = 0;
    int64_t document = 0;
    for (int64_t s = 0; s < num_sequences_; ++s) {
      while (document < num_bounds_ && bound(document) <= s) ++document;
      const bool ends = document < num_bounds_ && bound(document) == s + 1;
      starts_[static_cast<size_t>(s)] += added;
      if (ends && length(s) > 0 && lacks_one(byte(s), length(s))) ++added;
    }
    starts_.back() += added;
    return added;
  }

  /// The sequence, not empty, that place `place` of the stream is in.
  Sequence sequence_of(int64_t place) const;

 private:
  [[noreturn]] void refuse(const std::string& why) const;
  void read_header();
  void check_sequences(int64_t token_bytes);
  void check_overlaps() const;
  void check_bounds();
  int64_t length(int64_t sequence) const;
  int64_t byte(int64_t sequence) const;
  int64_t bound(int64_t document) const;

  std::string path_;
  core::MappedFile file_;
  IdType type_ = IdType::u16;
  int64_t num_sequences_ = 0;
  int64_t num_bounds_ = 0;
  int64_t num_documents_ = 0;
  int64_t unread_bytes_ = 0;
  std::vector<int64_t> starts_;  // of the sequences in the stream, and its end
};

}  // namespace tessera::data
