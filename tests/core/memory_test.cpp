#include "core/memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <utility>
#include <vector>

namespace tessera::core {
namespace {

TEST(MemoryLedger, CountsWhatIsLiveAndRemembersTheMost) {
  MemoryLedger ledger;
  ledger.add(Category::weights, 100);
  ledger.add(Category::weights, 50);
  ledger.remove(Category::weights, 120);
  EXPECT_EQ(ledger.current(Category::weights), 30);
  EXPECT_EQ(ledger.peak(Category::weights), 150);
}

TEST(MemoryLedger, KeepsCategoriesApart) {
  MemoryLedger ledger;
  ledger.add(Category::gradients, 7);
  EXPECT_EQ(ledger.current(Category::weights), 0);
  EXPECT_EQ(ledger.peak(Category::optimizer), 0);
  EXPECT_EQ(ledger.current(Category::gradients), 7);
}

TEST(MemoryLedger, PeaksInTotalAtOneMomentNotAsASumOfPeaks) {
  MemoryLedger ledger;
  ledger.add(Category::weights, 100);
  ledger.remove(Category::weights, 100);
  ledger.add(Category::activations, 60);
  ledger.add(Category::gradients, 50);
  EXPECT_EQ(ledger.peak_total(), 110);
}

TEST(MemoryLedger, LosesNothingBetweenThreads) {
  MemoryLedger ledger;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&ledger] {
      for (int i = 0; i < 5000; ++i) {
        ledger.add(Category::communication, 3);
        ledger.remove(Category::communication, 2);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ledger.current(Category::communication), 20000);
  EXPECT_GE(ledger.peak(Category::communication), 20000);
  EXPECT_LE(ledger.peak(Category::communication), 20000 + 4 * 3);
}

TEST(MemoryLedger, NamesEveryCategory) {
  EXPECT_STREQ(name_of(Category::weights), "weights");
  EXPECT_STREQ(name_of(Category::communication), "communication");
}

TEST(Tensor, IsZeroedAlignedAndCounted) {
  MemoryLedger ledger;
  const Tensor tensor(ledger, Category::optimizer, DType::bf16, {3, 5});
  EXPECT_EQ(ledger.current(Category::optimizer), 30);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.view().data) % 64, 0u);
  for (int i = 0; i < 15; ++i) EXPECT_EQ(tensor.view().as<bf16>()[i].bits, 0);
}

TEST(Tensor, LeavesTheLedgerWhenItDies) {
  MemoryLedger ledger;
  {
    const Tensor tensor(ledger, Category::weights, DType::f32, {10});
  }
  EXPECT_EQ(ledger.current(Category::weights), 0);
  EXPECT_EQ(ledger.peak(Category::weights), 40);
}

TEST(Tensor, IsCountedOnceWhenMoved) {
  MemoryLedger ledger;
  Tensor first(ledger, Category::weights, DType::f32, {10});
  void* data = first.view().data;
  Tensor second(std::move(first));
  EXPECT_EQ(second.view().data, data);
  EXPECT_EQ(ledger.current(Category::weights), 40);
  Tensor third(ledger, Category::gradients, DType::f32, {2});
  third = std::move(second);
  EXPECT_EQ(third.view().data, data);
  EXPECT_EQ(ledger.current(Category::gradients), 0);
  EXPECT_EQ(ledger.current(Category::weights), 40);
  third = Tensor();
  EXPECT_EQ(ledger.current(Category::weights), 0);
  EXPECT_FALSE(third);
}

TEST(Tensor, MayHaveNoElements) {
  MemoryLedger ledger;
  const Tensor tensor(ledger, Category::weights, DType::f32, {0, 4});
  EXPECT_EQ(ledger.current(Category::weights), 0);
  EXPECT_FALSE(tensor);
}

TEST(Tensor, HoldsWhatIsWrittenToIt) {
  MemoryLedger ledger;
  const int64_t n = 3 << 20;  // enough for huge pages
  const Tensor tensor(ledger, Category::weights, DType::f32, {n});
  tensor.view().as<float>()[n - 1] = 5;
  EXPECT_EQ(tensor.view().as<float>()[n - 1], 5);
  EXPECT_EQ(tensor.view().as<float>()[n - 2], 0);
}

}  // namespace
}  // namespace tessera::core
