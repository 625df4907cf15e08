#include "comm/hosts.h"

#include <gtest/gtest.h>

#include <cstring>

namespace tessera::comm {
namespace {

/// Every rank says what this process does.
Hosts hosts_of(int rank, int size, int usable_cores, int ranks_per_host) {
  const auto gather = [size](core::View out, core::ConstView in) {
    for (int i = 0; i < size; ++i) {
      std::memcpy(static_cast<std::byte*>(out.data) + i * in.bytes(), in.data,
                  static_cast<size_t>(in.bytes()));
    }
  };
  return find_hosts(rank, size, gather, usable_cores, ranks_per_host);
}

TEST(Hosts, RanksOfOneMachineAreOnOneHost) {
  const Hosts hosts = hosts_of(2, 4, 0, 0);
  EXPECT_EQ(hosts.num_hosts, 1);
  EXPECT_EQ(hosts.local_rank, 2);
  EXPECT_EQ(hosts.local_size, 4);
  EXPECT_EQ(hosts.host_of, (std::vector<int>{0, 0, 0, 0}));
  EXPECT_TRUE(hosts.even);
}

TEST(Hosts, NeighboursAreTakenForAHost) {
  const Hosts hosts = hosts_of(3, 5, 0, 2);
  EXPECT_EQ(hosts.num_hosts, 3);
  EXPECT_EQ(hosts.host_of, (std::vector<int>{0, 0, 1, 1, 2}));
  EXPECT_EQ(hosts.local_rank_of, (std::vector<int>{0, 1, 0, 1, 0}));
  EXPECT_EQ(hosts.local_rank, 1);
  EXPECT_EQ(hosts.local_size, 2);
  EXPECT_FALSE(hosts.even);
}

TEST(Hosts, CoresAreSharedByTheRanksOfAHost) {
  const double all = hosts_of(0, 1, 0, 0).cores;
  EXPECT_DOUBLE_EQ(hosts_of(0, 4, 0, 0).cores, all / 4);
  EXPECT_DOUBLE_EQ(hosts_of(0, 4, 1, 0).cores, std::min(all, 1.0) / 4);
  EXPECT_FALSE(hosts_of(0, 4, 1, 0).core_each);
  EXPECT_TRUE(hosts_of(0, 1, 1, 0).core_each);
}

}  // namespace
}  // namespace tessera::comm
