#include "cli/cluster_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::cli {
namespace {

using testing::HasSubstr;

TEST(ClusterFile, TakesWhatItLeavesOutFromItsBase) {
  std::vector<spec::Violation> violations;
  const plan::Cluster cluster = parse_cluster(
      "[cluster]\nbase = \"a100-80g\"\ndevices_per_node = 4\nusd_per_device_hour = 1\n"
      "[device]\nmemory_bytes = 96e9\nfamily = \"hopper\"\n[inter]\nbytes_per_s = 12.5e9\n",
      "mine.toml", violations);
  EXPECT_TRUE(violations.empty());
  EXPECT_EQ(cluster.name, "mine.toml");
  EXPECT_EQ(cluster.devices_per_node, 4);
  EXPECT_EQ(cluster.device.memory_bytes, 96'000'000'000);
  EXPECT_EQ(cluster.device.family, plan::Family::hopper);
  EXPECT_EQ(cluster.device.bf16_flops, 312e12);
  EXPECT_EQ(cluster.inter.bytes_per_s, 12.5e9);
  EXPECT_EQ(cluster.intra.bytes_per_s, 300e9);
}

TEST(ClusterFile, ListsEveryMistake) {
  std::vector<spec::Violation> violations;
  parse_cluster(
      "[cluster]\nbase = \"a100\"\n[device]\nmemory_byte = 1\nfamily = \"amper\"\n"
      "[intra]\nlatency_s = -1\n",
      "mine.toml", violations);
  ASSERT_EQ(violations.size(), 4U);
  EXPECT_THAT(violations[0].suggest, HasSubstr("a100-"));
  EXPECT_EQ(violations[0].where, "mine.toml:2");
  EXPECT_EQ(violations[1].suggest, "device.memory_bytes");
  EXPECT_THAT(violations[2].suggest, HasSubstr("ampere"));
  EXPECT_EQ(violations[3].key, "intra.latency_s");
}

TEST(ClusterFile, SaysTheRangeOfANumberThatIsOutOfIt) {
  std::vector<spec::Violation> violations;
  parse_cluster(
      "[cluster]\nbase = \"a100-80g\"\ndevices_per_node = 1e19\n[device]\nbf16_flops = 1e300\n"
      "fp8_flops = -1\n[intra]\nbytes_per_s = 1e-300\n",
      "mine.toml", violations);
  ASSERT_EQ(violations.size(), 4U);
  EXPECT_THAT(violations[0].why, HasSubstr("from 1 to 1e+18"));
  EXPECT_THAT(violations[1].why, HasSubstr("from 1000 to 1e+30"));
  EXPECT_THAT(violations[2].why, HasSubstr("from 0 to 1e+30"));
  EXPECT_THAT(violations[3].why, HasSubstr("from 1000 to 1e+30"));
}

TEST(ClusterFile, NeedsABase) {
  std::vector<spec::Violation> violations;
  parse_cluster("[device]\nunits = 64\n", "mine.toml", violations);
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_EQ(violations[0].key, "cluster.base");
}

TEST(LinksFile, PutsWhatWasMeasuredInPlaceOfThePreset) {
  plan::Cluster cluster = *plan::find_cluster("cpu-host");
  const plan::Link inter = cluster.inter;
  std::vector<spec::Violation> violations;
  parse_links("[[link]]\nname = \"shm\"\nranks = 2\nlatency_s = 1.5e-6\nbytes_per_s = 8.25e9\n",
              "links.toml", cluster, violations);
  EXPECT_TRUE(violations.empty());
  EXPECT_EQ(cluster.intra.latency_s, 1.5e-6);
  EXPECT_EQ(cluster.intra.bytes_per_s, 8.25e9);
  EXPECT_EQ(cluster.inter.bytes_per_s, inter.bytes_per_s);
}

TEST(LinksFile, ReadsSeveralLinksAndSaysWhichItDoesNotKnow) {
  plan::Cluster cluster = *plan::find_cluster("cpu-host");
  std::vector<spec::Violation> violations;
  parse_links(
      "[[link]]\nname = \"intra\"\nlatency_s = 1e-6\nbytes_per_s = 1e10\n"
      "[[link]]\nname = \"mpi\"\nlatency_s = 2e-6\nbytes_per_s = 3e9\n"
      "[[link]]\nname = \"pigeon\"\nlatency_s = 1\nbytes_per_s = 1e3\n",
      "links.toml", cluster, violations);
  EXPECT_EQ(cluster.intra.bytes_per_s, 1e10);
  EXPECT_EQ(cluster.inter.bytes_per_s, 3e9);
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_EQ(violations[0].value, "pigeon");
}

TEST(LinksFile, RefuseALinkThatSendsNothing) {
  plan::Cluster cluster = *plan::find_cluster("cpu-host");
  std::vector<spec::Violation> violations;
  parse_links("[[link]]\nname = \"shm\"\nlatency_s = 0\nbytes_per_s = 1e-300\n", "links.toml",
              cluster, violations);
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_THAT(violations[0].why, HasSubstr("bytes_per_s from 1000 to 1e+30"));
}

TEST(LinksFile, AnEmptyFileIsAMistake) {
  plan::Cluster cluster = *plan::find_cluster("cpu-host");
  std::vector<spec::Violation> violations;
  parse_links("", "links.toml", cluster, violations);
  EXPECT_EQ(violations.size(), 1U);
}

}  // namespace
}  // namespace tessera::cli
