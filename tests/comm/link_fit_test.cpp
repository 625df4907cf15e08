#include "comm/link_fit.h"

#include <gtest/gtest.h>

#include <vector>

namespace tessera::comm {
namespace {

/// All-reduces of 8 B to 64 MiB over `ranks`, each time off by `errors` in turn.
std::vector<LinkSample> samples(int ranks, double latency, double rate,
                                const std::vector<double>& errors = {0}) {
  std::vector<LinkSample> samples;
  for (int64_t bytes = 8; bytes <= int64_t{64} << 20; bytes *= 2) {
    const double hops = 2.0 * (ranks - 1);
    const double carried = 2.0 * (ranks - 1) / ranks * static_cast<double>(bytes);
    const double error = errors[samples.size() % errors.size()];
    samples.push_back({hops, carried, (hops * latency + carried / rate) * (1 + error)});
  }
  return samples;
}

TEST(LinkFit, FindsALinkFromExactTimes) {
  for (const int ranks : {2, 3, 8}) {
    const auto fit = fit_link(samples(ranks, 25e-6, 1.25e8));
    ASSERT_TRUE(fit.has_value());
    EXPECT_NEAR(fit->latency_s, 25e-6, 1e-12);
    EXPECT_NEAR(fit->bytes_per_s, 1.25e8, 1);
    EXPECT_NEAR(fit->mean_error, 0, 1e-9);
  }
}

TEST(LinkFit, IsAsGoodAsTheTimesItIsGiven) {
  const auto fit = fit_link(samples(2, 1e-6, 5e9, {0.1, -0.1, 0.05, -0.05}));
  ASSERT_TRUE(fit.has_value());
  EXPECT_NEAR(fit->latency_s, 1e-6, 0.1e-6);
  EXPECT_NEAR(fit->bytes_per_s, 5e9, 0.5e9);
  EXPECT_NEAR(fit->mean_error, 0.075, 0.02);
}

TEST(LinkFit, TakesOneLatencyAndRateFromSeveralCollectives) {
  std::vector<LinkSample> all = samples(4, 3e-6, 2e9);
  for (int64_t bytes = 64; bytes <= 1 << 20; bytes *= 4) {
    all.push_back({1, static_cast<double>(bytes), 3e-6 + static_cast<double>(bytes) / 2e9});
  }
  const auto fit = fit_link(all);
  ASSERT_TRUE(fit.has_value());
  EXPECT_NEAR(fit->latency_s, 3e-6, 1e-12);
  EXPECT_NEAR(fit->bytes_per_s, 2e9, 1);
}

TEST(LinkFit, NeverHasALatencyBelowZero) {
  const LinkSample steeper_than_its_size[] = {{1, 1000, 1e-6}, {1, 2000, 3e-6}};
  const auto fit = fit_link(steeper_than_its_size);
  ASSERT_TRUE(fit.has_value());
  EXPECT_EQ(fit->latency_s, 0);
  EXPECT_GT(fit->bytes_per_s, 2000 / 3e-6);
  EXPECT_LT(fit->bytes_per_s, 1000 / 1e-6);
}

TEST(LinkFit, FindsNoneInOneSizeOrInTimesThatNoSizeExplains) {
  EXPECT_FALSE(fit_link({}).has_value());
  const LinkSample one[] = {{2, 1000, 1e-5}, {2, 1000, 2e-5}, {4, 2000, 2e-5}};
  EXPECT_FALSE(fit_link(one).has_value());
  const LinkSample nobody[] = {{0, 0, 1e-6}, {0, 0, 2e-6}};
  EXPECT_FALSE(fit_link(nobody).has_value());
  const LinkSample faster_when_larger[] = {{1, 1000, 1e-5}, {1, 100000, 1e-6}};
  EXPECT_FALSE(fit_link(faster_when_larger).has_value());
}

}  // namespace
}  // namespace tessera::comm
