#include "core/arena.h"

#include <algorithm>

#include "core/pages.h"

namespace tessera::core {

namespace {
constexpr int64_t kMinChunk = int64_t{1} << 20;
}  // namespace

Arena::Arena(MemoryLedger& ledger, Category category, int64_t expected_bytes)
    : ledger_(ledger), category_(category) {
  if (expected_bytes > 0) add_chunk(expected_bytes);
}

Arena::~Arena() {
  for (const Chunk& chunk : chunks_) unmap_pages(chunk.data, chunk.bytes);
  ledger_.remove(category_, used_);
}

View Arena::allocate(DType dtype, Shape shape) {
  const int64_t bytes =
      (shape.elements() * size_of(dtype) + kAlignment - 1) / kAlignment * kAlignment;
  while (chunk_ < chunks_.size() && offset_ + bytes > chunks_[chunk_].bytes) {
    ++chunk_;
    offset_ = 0;
  }
  if (chunk_ == chunks_.size()) add_chunk(std::max(bytes, kMinChunk));
  void* data = static_cast<std::byte*>(chunks_[chunk_].data) + offset_;
  offset_ += bytes;
  used_ += bytes;
  ledger_.add(category_, bytes);
  return {data, dtype, shape};
}

void Arena::release(const Mark& mark) {
  CHECK(mark.used <= used_, "arena released out of order");
  ledger_.remove(category_, used_ - mark.used);
  chunk_ = mark.chunk;
  offset_ = mark.offset;
  used_ = mark.used;
}

void Arena::add_chunk(int64_t bytes) {
  chunks_.push_back({map_pages(bytes), bytes});
  chunk_ = chunks_.size() - 1;
  offset_ = 0;
}

}  // namespace tessera::core
