#include "comm/copy.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace tessera::comm {

namespace {

constexpr int64_t kShort = 1024;                     // as fast either way
constexpr int64_t kBeyondCaches = int64_t{8} << 20;  // what a core may call its own, and more

#if defined(__SSE2__)
constexpr size_t kVector = sizeof(__m128i);

void copy_past_caches(void* to, const void* from, size_t bytes) {
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  // Stores past the caches are aligned; lines that are written in part are slow, but they are two.
  const size_t misaligned = reinterpret_cast<uintptr_t>(target) % kVector;
  const size_t head = std::min(bytes, (kVector - misaligned) % kVector);
  std::memcpy(target, source, head);
  target += head;
  source += head;
  bytes -= head;
  for (; bytes >= 4 * kVector; bytes -= 4 * kVector) {
    __m128i line[4];
    for (int i = 0; i < 4; ++i)
      line[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(source) + i);
    for (int i = 0; i < 4; ++i) _mm_stream_si128(reinterpret_cast<__m128i*>(target) + i, line[i]);
    target += sizeof(line);
    source += sizeof(line);
  }
  std::memcpy(target, source, bytes);
  _mm_sfence();  // such stores are not ordered otherwise, by no kind of atomic store
}
#else
void copy_past_caches(void* to, const void* from, size_t bytes) {
  std::memcpy(to, from, bytes);
}
#endif

void copy(void* to, const void* from, int64_t bytes, bool past_caches) {
  if (bytes <= 0) return;
  if (past_caches) return copy_past_caches(to, from, static_cast<size_t>(bytes));
  std::memcpy(to, from, static_cast<size_t>(bytes));
}

}  // namespace

void copy_for_peer(void* to, const void* from, int64_t bytes) {
  copy(to, from, bytes, bytes > kShort);
}

void copy_of_whole(void* to, const void* from, int64_t bytes, int64_t whole) {
  copy(to, from, bytes, bytes > kShort && whole > kBeyondCaches);
}

}  // namespace tessera::comm
