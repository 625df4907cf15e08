#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "data/dataset.h"
#include "support.h"

namespace tessera::data {
namespace {

std::vector<int64_t> epoch_of(const Sampler& sampler, int64_t num_windows, int64_t epoch) {
  std::vector<int64_t> windows;
  for (int64_t i = 0; i < num_windows; ++i) {
    windows.push_back(sampler.window(epoch * num_windows + i));
  }
  return windows;
}

TEST(Sampler, VisitsEveryWindowOnceAnEpoch) {
  std::vector<int64_t> sizes{1000, 1023, 1024, 1025, 4095, 4097, 65536, 100'003};
  for (int64_t size = 1; size <= 130; ++size) sizes.push_back(size);
  for (const int64_t size : sizes) {
    const Sampler sampler(size, 1234);
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<int64_t> windows = epoch_of(sampler, size, epoch);
      std::sort(windows.begin(), windows.end());
      for (int64_t i = 0; i < size; ++i) ASSERT_EQ(windows[static_cast<size_t>(i)], i) << size;
    }
  }
}

TEST(Sampler, ShufflesAnewByEpochAndBySeed) {
  const Sampler sampler(1000, 1);
  EXPECT_NE(epoch_of(sampler, 1000, 0), epoch_of(sampler, 1000, 1));
  EXPECT_NE(epoch_of(sampler, 1000, 0), epoch_of(Sampler(1000, 2), 1000, 0));
  EXPECT_EQ(epoch_of(sampler, 1000, 7), epoch_of(Sampler(1000, 1), 1000, 7));
}

TEST(Sampler, KeepsItsOrderFromVersionToVersion) {
  // A run that is resumed by a later build must see the samples that it had not seen.
  EXPECT_EQ(epoch_of(Sampler(10, 1234), 10, 0),
            (std::vector<int64_t>{0, 9, 2, 4, 3, 5, 7, 6, 1, 8}));
  EXPECT_EQ(Sampler(1'000'000, 1234).window(123'456'789), 782'550);
}

TEST(Sampler, WorksForATrillionWindows) {
  constexpr int64_t kWindows = (int64_t{1} << 40) + 12345;
  const Sampler sampler(kWindows, 5);
  std::map<int64_t, int64_t> seen;
  for (int64_t i = 0; i < 20'000; ++i) {
    const int64_t window = sampler.window(i * 54'975'581 % kWindows);
    ASSERT_GE(window, 0);
    ASSERT_LT(window, kWindows);
    ASSERT_TRUE(seen.emplace(window, i).second);
  }
  // Spread over the whole range: quarters hold about 5,000 each (standard deviation 61).
  for (int quarter = 0; quarter < 4; ++quarter) {
    const auto from = seen.lower_bound(kWindows / 4 * quarter);
    const auto to = seen.lower_bound(kWindows / 4 * (quarter + 1));
    EXPECT_NEAR(static_cast<double>(std::distance(from, to)), 5000, 400);
  }
}

/// Chi-square of `counts` against equal shares; its mean is one less than their number.
template <class Key>
double chi_square(const std::map<Key, int64_t>& counts, size_t cells, int64_t draws) {
  const double expected = static_cast<double>(draws) / static_cast<double>(cells);
  double sum = static_cast<double>(cells - counts.size()) * expected;
  for (const auto& [key, count] : counts) {
    const double off = static_cast<double>(count) - expected;
    sum += off * off / expected;
  }
  return sum;
}

TEST(Sampler, PutsAWindowAnywhereEquallyOften) {
  for (const int64_t size : {5, 37, 64, 100}) {
    const Sampler sampler(size, 99);
    std::map<int64_t, int64_t> first;
    std::map<std::pair<int64_t, int64_t>, int64_t> both;
    constexpr int64_t kEpochs = 20'000;
    for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
      const int64_t a = sampler.window(epoch * size);
      const int64_t b = sampler.window(epoch * size + size - 1);
      ++first[a];
      ++both[{a, b}];
    }
    // The standard deviation of chi-square is the root of twice its mean; six of them are allowed.
    const auto bound = [](double cells) { return cells - 1 + 6 * std::sqrt(2 * (cells - 1)); };
    const auto cells = static_cast<size_t>(size);
    EXPECT_LT(chi_square(first, cells, kEpochs), bound(static_cast<double>(cells))) << size;
    const size_t pairs = cells * (cells - 1);
    EXPECT_LT(chi_square(both, pairs, kEpochs), bound(static_cast<double>(pairs))) << size;
  }
}

TEST(Sampler, ReachesEveryOrderOfFewWindows) {
  std::map<std::vector<int64_t>, int64_t> orders;
  const Sampler sampler(4, 3);
  constexpr int64_t kEpochs = 12'000;
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) ++orders[epoch_of(sampler, 4, epoch)];
  EXPECT_EQ(orders.size(), 24u);
  EXPECT_LT(chi_square(orders, 24, kEpochs), 23 + 6 * std::sqrt(46.0));
}

TEST(Sampler, RefusesNegativeSamplesAndNoWindows) {
  EXPECT_THROW(Sampler(0, 1), core::InternalError);
  EXPECT_THROW(Sampler(5, 1).window(-1), core::InternalError);
}

}  // namespace
}  // namespace tessera::data
