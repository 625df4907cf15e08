#pragma once

// XXH3-128 (xxHash by Yann Collet): a checksum against accidents, not against adversaries.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace tessera::formats {

/// A hash over bytes that come in pieces; how they are cut does not matter.
class Xxh3 {
 public:
  Xxh3();
  ~Xxh3();
  Xxh3(const Xxh3&) = delete;
  Xxh3& operator=(const Xxh3&) = delete;

  void update(const void* data, int64_t bytes);
  /// Of everything so far: 32 lower-case hexadecimal digits, the canonical form of xxhsum -H128.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What a manifest says about a file.
struct FileDigest {
  int64_t bytes = 0;
  std::string xxh3;

  friend bool operator==(const FileDigest&, const FileDigest&) = default;
};

/// Reads a whole file, a piece at a time. Throws RunError when it cannot.
FileDigest digest_of_file(const std::string& path);

}  // namespace tessera::formats
