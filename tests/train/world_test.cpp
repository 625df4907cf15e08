#include "train/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace tessera::train {
namespace {

using spec::Backend;
using testing::AllOf;
using testing::HasSubstr;

RankEnvironment place(Launcher launcher, int world_size, int local_world_size) {
  RankEnvironment environment;
  environment.launcher = launcher;
  environment.source = name_of(launcher);
  environment.world_size = world_size;
  environment.local_world_size = local_world_size;
  environment.rendezvous = "nobody-else";
  return environment;
}

std::string error_of(const RankEnvironment& environment, Backend backend) {
  spec::RunConfig config;
  config.comm.backend = backend;
  try {
    const World world(environment, config);
  } catch (const core::ConfigError& error) {
    return error.what();
  }
  return "no error";
}

TEST(World, OfOneRankNeedsNoTransport) {
  spec::RunConfig config;
  for (const Backend backend : {Backend::automatic, Backend::shm, Backend::mpi}) {
    config.comm.backend = backend;
    World world(place(Launcher::none, 1, 1), config);
    EXPECT_EQ(world.comm().size(), 1);
    EXPECT_STREQ(world.comm().backend(), "self");
    world.leave();
  }
}

TEST(World, OverMpiNeedsALauncherOfMpi) {
  EXPECT_THAT(error_of(place(Launcher::tessera, 4, 4), Backend::mpi),
              AllOf(HasSubstr("tessera launch has started"), HasSubstr("mpirun -n 4")));
}

TEST(World, OfSeveralHostsHasNoMemoryInCommon) {
  EXPECT_THAT(error_of(place(Launcher::open_mpi, 4, 2), Backend::shm),
              AllOf(HasSubstr("only 2 of these 4"), HasSubstr("\"auto\"")));
}

TEST(World, OfProcessesIsNotOneOfThreads) {
  EXPECT_THAT(error_of(place(Launcher::open_mpi, 4, 4), Backend::thread),
              HasSubstr("\"thread\" makes ranks of threads"));
}

}  // namespace
}  // namespace tessera::train
