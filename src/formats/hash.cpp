#include "formats/hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <vector>

#include "core/error.h"

namespace tessera::formats {

struct Xxh3::State {
  State() : xxh(XXH3_createState()) {
    if (xxh == nullptr || XXH3_128bits_reset(xxh) != XXH_OK) throw std::bad_alloc();
  }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  XXH3_state_t* xxh;
};

Xxh3::Xxh3() : state_(std::make_unique<State>()) {}
Xxh3::~Xxh3() = default;

void Xxh3::update(const void* data, int64_t bytes) {
  if (bytes > 0) XXH3_128bits_update(state_->xxh, data, static_cast<size_t>(bytes));
}

std::string Xxh3::hex() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(state_->xxh);
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

FileDigest digest_of_file(const std::string& path) {
  constexpr size_t kPiece = size_t{1} << 20;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             &std::fclose);
  if (!file) {
    throw core::RunError(fmt::format("{}: cannot be opened: {}", path, std::strerror(errno)));
  }
  std::vector<char> piece(kPiece);
  Xxh3 hash;
  FileDigest digest;
  for (size_t count = kPiece; count == kPiece;) {
    count = std::fread(piece.data(), 1, kPiece, file.get());
    if (std::ferror(file.get()) != 0) {
      throw core::RunError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
    }
    hash.update(piece.data(), static_cast<int64_t>(count));
    digest.bytes += static_cast<int64_t>(count);
  }
  digest.xxh3 = hash.hex();
  return digest;
}

}  // namespace tessera::formats
