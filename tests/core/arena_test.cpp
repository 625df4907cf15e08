#include "core/arena.h"

#include <gtest/gtest.h>

#include <vector>

namespace tessera::core {
namespace {

TEST(Arena, RoundsEveryTensorUpToItsAlignment) {
  MemoryLedger ledger;
  Arena arena(ledger, Category::activations, 4096);
  const View a = arena.allocate(DType::f32, {3});
  const View b = arena.allocate(DType::bf16, {33});
  EXPECT_EQ(arena.used(), 64 + 128);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a.data) % Arena::kAlignment, 0u);
  EXPECT_EQ(static_cast<std::byte*>(b.data) - static_cast<std::byte*>(a.data), 64);
  EXPECT_EQ(ledger.current(Category::activations), 192);
}

TEST(Arena, GivesMemoryBackInTheOrderOfAStack) {
  MemoryLedger ledger;
  Arena arena(ledger, Category::activations, 4096);
  const View outer = arena.allocate(DType::f32, {16});
  const void* first;
  {
    Arena::Scope scope(arena);
    first = arena.allocate(DType::f32, {100}).data;
    {
      Arena::Scope inner(arena);
      arena.allocate(DType::f32, {100});
      EXPECT_EQ(arena.used(), 64 + 448 + 448);
    }
    EXPECT_EQ(arena.used(), 64 + 448);
  }
  EXPECT_EQ(arena.used(), 64);
  EXPECT_EQ(arena.allocate(DType::f32, {100}).data, first);
  EXPECT_NE(outer.data, first);
}

TEST(Arena, KeepsWhatItHandedOutWhenItGrows) {
  MemoryLedger ledger;
  Arena arena(ledger, Category::activations, 128);
  const View small = arena.allocate(DType::f32, {16});
  small.as<float>()[0] = 42;
  const View large = arena.allocate(DType::f32, {1 << 20});  // no chunk has room for it yet
  large.as<float>()[(1 << 20) - 1] = 1;
  EXPECT_EQ(small.as<float>()[0], 42);
  EXPECT_EQ(arena.used(), 64 + (int64_t{4} << 20));
}

TEST(Arena, StartsWithoutAnExpectation) {
  MemoryLedger ledger;
  Arena arena(ledger, Category::activations, 0);
  EXPECT_EQ(ledger.current(Category::activations), 0);
  EXPECT_TRUE(arena.allocate(DType::f32, {10}));
}

TEST(Arena, UsesItsChunksAgain) {
  MemoryLedger ledger;
  Arena arena(ledger, Category::activations, 128);
  const auto allocate_three = [&arena] {
    Arena::Scope scope(arena);
    std::vector<const void*> places;
    for (int i = 0; i < 3; ++i) places.push_back(arena.allocate(DType::u8, {3 << 20}).data);
    return places;
  };
  const std::vector<const void*> first = allocate_three();
  EXPECT_EQ(allocate_three(), first);
}

TEST(Arena, RemembersItsHighWaterMarkInTheLedger) {
  MemoryLedger ledger;
  Arena arena(ledger, Category::activations, 1 << 16);
  for (int64_t rows : {10, 200, 50}) {
    Arena::Scope scope(arena);
    arena.allocate(DType::f32, {rows, 16});
  }
  EXPECT_EQ(ledger.current(Category::activations), 0);
  EXPECT_EQ(ledger.peak(Category::activations), 200 * 64);
}

TEST(Arena, CountsOnlyWhatIsLiveNotWhatAChunkCouldHold) {
  MemoryLedger ledger;
  Arena arena(ledger, Category::activations, 1 << 20);
  arena.allocate(DType::f32, {16});
  EXPECT_EQ(ledger.peak(Category::activations), 64);
}

TEST(Arena, LeavesTheLedgerWhenItDies) {
  MemoryLedger ledger;
  {
    Arena arena(ledger, Category::gathered, 4096);
    arena.allocate(DType::f32, {64});
  }
  EXPECT_EQ(ledger.current(Category::gathered), 0);
}

TEST(Arena, RefusesAReleaseOutOfOrder) {
  MemoryLedger ledger;
  Arena arena(ledger, Category::activations, 4096);
  const Arena::Mark outer = arena.mark();
  arena.allocate(DType::f32, {64});
  const Arena::Mark inner = arena.mark();
  arena.release(outer);
  EXPECT_THROW(arena.release(inner), InternalError);
}

TEST(Arena, TakesATensorWithoutElements) {
  MemoryLedger ledger;
  Arena arena(ledger, Category::activations, 4096);
  EXPECT_EQ(arena.allocate(DType::f32, {0}).elements(), 0);
  EXPECT_EQ(arena.used(), 0);
}

}  // namespace
}  // namespace tessera::core
