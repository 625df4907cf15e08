#include "account/head_chunks.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace tessera::account {
namespace {

TEST(HeadChunks, AreEqualAndOfBoundedLogits) {
  EXPECT_EQ(head_chunk_rows(1, 1024, 50257, core::DType::bf16), 512);
  EXPECT_EQ(head_chunk_rows(1, 1024, 257, core::DType::bf16), 1024);
  EXPECT_EQ(head_chunk_rows(1, 1000, 50257, core::DType::f32), 250);
  EXPECT_EQ(head_chunk_rows(1, 1, 50257, core::DType::f32), 1);
  EXPECT_EQ(head_chunk_rows(1, 7, int64_t{1} << 40, core::DType::f32), 1);
  // Sequences that stay apart: as many whole ones as fit, or pieces of one.
  EXPECT_EQ(head_chunk_rows(8, 128, 50257, core::DType::bf16), 512);
  EXPECT_EQ(head_chunk_rows(5, 200, 50257, core::DType::bf16), 600);
  EXPECT_EQ(head_chunk_rows(3, 1024, 50257, core::DType::bf16), 512);
}

TEST(HeadChunks, AreWholeRunsOrEndWhereARunEnds) {
  using Chunks = std::vector<std::pair<int64_t, int64_t>>;
  const auto chunks_of = [](int64_t rows, int64_t run, int64_t chunk) {
    Chunks chunks;
    for_each_head_chunk(rows, run, chunk,
                        [&](int64_t first, int64_t count) { chunks.emplace_back(first, count); });
    return chunks;
  };
  EXPECT_EQ(chunks_of(10, 2, 4), (Chunks{{0, 4}, {4, 4}, {8, 2}}));
  EXPECT_EQ(chunks_of(10, 5, 3), (Chunks{{0, 3}, {3, 2}, {5, 3}, {8, 2}}));
  EXPECT_EQ(chunks_of(0, 1, 0), Chunks{});
}

}  // namespace
}  // namespace tessera::account
