#include "train/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "core/error.h"

namespace tessera::train {
namespace {

using core::ConfigError;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

/// `variables` must outlive the lookup.
EnvironmentLookup lookup_in(const Variables& variables) {
  return [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

RankEnvironment read(const Variables& variables, int cores = 8) {
  return read_rank_environment(lookup_in(variables), cores);
}

std::string error_of(const Variables& variables) {
  try {
    read(variables);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}

/// What torchrun gives rank 2 of 4.
Variables torchrun() {
  return {{"RANK", "2"},
          {"WORLD_SIZE", "4"},
          {"LOCAL_RANK", "2"},
          {"LOCAL_WORLD_SIZE", "4"},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", "29500"},
          {"TORCHELASTIC_RUN_ID", "none"},
          {"TORCHELASTIC_RESTART_COUNT", "0"}};
}

Variables with(Variables variables, const std::string& name, const std::string& value) {
  variables[name] = value;
  return variables;
}

Variables without(Variables variables, const std::string& name) {
  variables.erase(name);
  return variables;
}

TEST(RankEnvironment, IsASingleProcessWhereNothingIsSet) {
  const RankEnvironment env = read({});
  EXPECT_EQ(env.rank, 0);
  EXPECT_EQ(env.world_size, 1);
  EXPECT_EQ(env.local_rank, 0);
  EXPECT_EQ(env.local_world_size, 1);
  EXPECT_EQ(env.source, "single process");
  EXPECT_EQ(env.rendezvous, "");
  EXPECT_FALSE(env.restarted);
  EXPECT_EQ(env.num_threads, 8);
}

TEST(RankEnvironment, UnderstandsTorchrun) {
  const RankEnvironment env = read(torchrun());
  EXPECT_EQ(env.rank, 2);
  EXPECT_EQ(env.world_size, 4);
  EXPECT_EQ(env.local_rank, 2);
  EXPECT_EQ(env.local_world_size, 4);
  EXPECT_EQ(env.source, "torchrun");
  EXPECT_EQ(env.restart_count, 0);
  EXPECT_FALSE(env.restarted);
}

TEST(RankEnvironment, NamesTesseraLaunchAsItsSource) {
  const RankEnvironment env =
      read(without(with(torchrun(), "TESSERA_LAUNCH_ID", "6f00"), "MASTER_PORT"));
  EXPECT_EQ(env.source, "tessera launch");
  EXPECT_EQ(env.rank, 2);
}

TEST(RankEnvironment, MeetsAllRanksOfARunUnderOneName) {
  const RankEnvironment here = read(torchrun());
  const RankEnvironment there = read(with(with(torchrun(), "RANK", "0"), "LOCAL_RANK", "0"));
  EXPECT_NE(here.rendezvous, "");
  EXPECT_EQ(here.rendezvous, there.rendezvous);
}

TEST(RankEnvironment, MeetsOtherRunsAndRestartsUnderOtherNames) {
  const std::set<std::string> names{
      read(torchrun()).rendezvous,
      read(with(torchrun(), "MASTER_PORT", "29501")).rendezvous,
      read(with(torchrun(), "TORCHELASTIC_RUN_ID", "17")).rendezvous,
      read(with(torchrun(), "TORCHELASTIC_RESTART_COUNT", "1")).rendezvous,
      read(with(torchrun(), "TESSERA_LAUNCH_ID", "a")).rendezvous,
      read(with(torchrun(), "TESSERA_LAUNCH_ID", "b")).rendezvous,
  };
  EXPECT_EQ(names.size(), 6u);
}

TEST(RankEnvironment, MeetsUnderANameThatCanBeAFile) {
  const RankEnvironment env = read(with(torchrun(), "TORCHELASTIC_RUN_ID", "job/7 of \xC3\xA9"));
  EXPECT_EQ(env.rendezvous.find_first_of("/ \xC3\xA9"), std::string::npos);
}

TEST(RankEnvironment, TakesARestartForOne) {
  const RankEnvironment env = read(with(torchrun(), "TORCHELASTIC_RESTART_COUNT", "3"));
  EXPECT_EQ(env.restart_count, 3);
  EXPECT_TRUE(env.restarted);
  EXPECT_TRUE(read({{"TESSERA_RESTART", "1"}}).restarted);
  EXPECT_FALSE(read({{"TESSERA_RESTART", "0"}}).restarted);
}

TEST(RankEnvironment, CountsAnEmptyVariableAsNotSet) {
  EXPECT_EQ(read({{"RANK", ""}, {"WORLD_SIZE", ""}}).source, "single process");
  EXPECT_THAT(error_of(with(torchrun(), "WORLD_SIZE", "")), HasSubstr("WORLD_SIZE is not"));
}

TEST(RankEnvironment, AcceptsAWorldOfOneWithoutLocalRanks) {
  const RankEnvironment env = read({{"RANK", "0"}, {"WORLD_SIZE", "1"}});
  EXPECT_EQ(env.local_world_size, 1);
  EXPECT_EQ(env.source, "torchrun");
}

TEST(RankEnvironment, NamesTheVariableThatIsMissing) {
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT"}) {
    EXPECT_THAT(error_of(without(torchrun(), name)),
                AllOf(HasSubstr(std::string(name) + " is not"), HasSubstr("tessera launch")));
  }
}

TEST(RankEnvironment, NamesTheVariableThatIsNoNumber) {
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_PORT",
                           "TORCHELASTIC_RESTART_COUNT"}) {
    for (const char* value : {"x", "1x", "-1", " 1", "1.5", "99999999999999999999"}) {
      EXPECT_THAT(error_of(with(torchrun(), name, value)),
                  HasSubstr(std::string(name) + "=" + value));
    }
  }
}

TEST(RankEnvironment, RefusesARankOutsideItsWorld) {
  EXPECT_THAT(error_of(with(torchrun(), "RANK", "5")),
              AllOf(HasSubstr("RANK=5"), HasSubstr("WORLD_SIZE=4"), HasSubstr("0 to 3")));
  EXPECT_THAT(error_of(with(torchrun(), "LOCAL_RANK", "4")), HasSubstr("LOCAL_RANK=4"));
  EXPECT_THAT(error_of(with(torchrun(), "LOCAL_WORLD_SIZE", "5")), HasSubstr("LOCAL_WORLD_SIZE=5"));
}

TEST(RankEnvironment, RefusesAWorldOfSeveralHosts) {
  const Variables hosts = with(with(torchrun(), "LOCAL_WORLD_SIZE", "2"), "LOCAL_RANK", "0");
  EXPECT_THAT(error_of(hosts), HasSubstr("several hosts"));
}

TEST(RankEnvironment, RefusesAWorldOfOpenMpi) {
  EXPECT_THAT(error_of({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "1"}}),
              AllOf(HasSubstr("OMPI_COMM_WORLD_SIZE=4"), HasSubstr("tessera launch")));
  EXPECT_EQ(read({{"OMPI_COMM_WORLD_SIZE", "1"}}).source, "single process");
}

TEST(RankEnvironment, RefusesAWorldOfMpich) {
  EXPECT_THAT(error_of({{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}}), HasSubstr("PMI_SIZE=2"));
}

TEST(RankEnvironment, RefusesASlurmStepOfSeveralTasks) {
  EXPECT_THAT(error_of({{"SLURM_STEP_ID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "1"}}),
              AllOf(HasSubstr("srun"), HasSubstr("SLURM_NTASKS=4")));
}

TEST(RankEnvironment, IsASingleProcessInAPlainSbatchScript) {
  const RankEnvironment env = read({{"SLURM_JOB_ID", "77"},
                                    {"SLURM_PROCID", "0"},
                                    {"SLURM_LOCALID", "0"},
                                    {"SLURM_NTASKS", "4"}});
  EXPECT_EQ(env.world_size, 1);
  EXPECT_EQ(env.source, "single process");
}

TEST(RankEnvironment, IsASingleProcessInAnInteractiveStepOfALargerJob) {
  const Variables shell{
      {"SLURM_STEP_ID", "4294967290"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_NTASKS", "4"}};
  EXPECT_EQ(read(shell).source, "single process");
}

TEST(RankEnvironment, PrefersTorchrunInsideASlurmStep) {
  Variables both = torchrun();
  both["SLURM_STEP_ID"] = "0";
  both["SLURM_NTASKS"] = "2";
  EXPECT_EQ(read(both).source, "torchrun");
}

TEST(RankEnvironment, SharesTheCoresAmongTheRanksOfItsHost) {
  EXPECT_EQ(read(torchrun(), 10).num_threads, 2);
  EXPECT_EQ(read(torchrun(), 4).num_threads, 1);
  EXPECT_EQ(read(torchrun(), 2).num_threads, 1);
}

TEST(RankEnvironment, LetsTheUsersThreadsWin) {
  EXPECT_EQ(read(with(torchrun(), "OMP_NUM_THREADS", "3"), 16).num_threads, 3);
  EXPECT_EQ(read({{"OMP_NUM_THREADS", "5,2"}}, 16).num_threads, 5);
  EXPECT_THAT(error_of({{"OMP_NUM_THREADS", "all"}}), HasSubstr("OMP_NUM_THREADS=all"));
  EXPECT_THAT(error_of({{"OMP_NUM_THREADS", "0"}}), HasSubstr("OMP_NUM_THREADS=0"));
}

}  // namespace
}  // namespace tessera::train
