#include "train/mesh_on_hosts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace tessera::train {
namespace {

spec::RunConfig of_degree(int64_t tp) {
  spec::RunConfig config;
  config.parallelism.tensor_parallel_degree = tp;
  return config;
}

TEST(CheckMeshOnHosts, TakesGroupsThatStayOnTheirHost) {
  EXPECT_NO_THROW(check_mesh_on_hosts(of_degree(4), {}, 0));  // one host
  EXPECT_NO_THROW(check_mesh_on_hosts(of_degree(2), {0, 0, 0, 0, 1, 1}, 0));
  EXPECT_NO_THROW(check_mesh_on_hosts(of_degree(1), {0, 1, 0, 1}, 0));
}

TEST(CheckMeshOnHosts, RefusesGroupsOverHostsWithWhatTheySend) {
  try {
    check_mesh_on_hosts(of_degree(4), {0, 0, 1, 1}, 12'340'000);
    FAIL();
  } catch (const core::ConfigError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("12.3 MB"));
    EXPECT_THAT(error.what(), testing::HasSubstr("Try 1 or 2,"));
  }
  // As many on each host, but dealt out in turn.
  EXPECT_THROW(check_mesh_on_hosts(of_degree(2), {0, 1, 0, 1}, 0), core::ConfigError);
}

TEST(CheckMeshOnHosts, LetsThemWhereTheConfigSaysSo) {
  spec::RunConfig config = of_degree(4);
  config.parallelism.tensor_parallel_across_hosts = true;
  EXPECT_NO_THROW(check_mesh_on_hosts(config, {0, 0, 1, 1}, 0));
}

}  // namespace
}  // namespace tessera::train
