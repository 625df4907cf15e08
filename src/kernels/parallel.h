#pragma once

#include <cstdint>

// Threads serve whole blocks of work that are cut the same way for every number of threads, so that
// a result never depends on who computed it.

namespace tessera::kernels {

/// Under this many elements a team costs more to wake than it saves.
inline constexpr int64_t kParallelFrom = int64_t{1} << 15;

/// Elements of one block of an elementwise operation: a multiple of every vector width, and small
/// enough that operands of several passes stay in cache.
inline constexpr int64_t kElementBlock = int64_t{1} << 14;

/// Rows of `width` elements that make such a block.
constexpr int64_t rows_of_a_block(int64_t width) {
  return width < 1 ? kElementBlock : width < kElementBlock ? kElementBlock / width : 1;
}

/// Calls body(i) for i in [0, count), on the calling thread's team where `elements`, the size of
/// all the work, makes that pay. The bodies must not throw, nor touch what another writes. Under
/// ThreadSanitizer, which cannot see into OpenMP's runtime, always on the calling thread.
template <class Body>
void parallel_for(int64_t count, int64_t elements, const Body& body) {
#ifdef TESSERA_SANITIZE_thread
  static_cast<void>(elements);
  for (int64_t i = 0; i < count; ++i) body(i);
#else
  if (count == 1 || elements < kParallelFrom) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < count; ++i) body(i);
#endif
}

/// Calls body(begin, size) for each block of `block` of [0, total); the last may be shorter.
template <class Body>
void parallel_blocks(int64_t total, int64_t block, int64_t elements, const Body& body) {
  parallel_for((total + block - 1) / block, elements, [&](int64_t i) {
    const int64_t begin = i * block;
    body(begin, total - begin < block ? total - begin : block);
  });
}

}  // namespace tessera::kernels
