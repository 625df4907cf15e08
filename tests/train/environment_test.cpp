#include "train/environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "core/error.h"
#include "train/job_environment.h"

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

/// What mpirun gives rank 3 of 4, two on each host.
Variables open_mpi() {
  return {{"OMPI_COMM_WORLD_RANK", "3"},       {"OMPI_COMM_WORLD_SIZE", "4"},
          {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
          {"PMIX_NAMESPACE", "22957"},         {"PMIX_SERVER_URI2", "22957.0;tcp4://127.0.0.1:1"}};
}

/// What srun gives rank 5 of 6: four tasks on the first node, two on the second.
Variables slurm() {
  return {{"SLURM_JOB_ID", "77"},       {"SLURM_STEP_ID", "0"},
          {"SLURM_PROCID", "5"},        {"SLURM_STEP_NUM_TASKS", "6"},
          {"SLURM_NTASKS", "6"},        {"SLURM_LOCALID", "1"},
          {"SLURM_NODEID", "1"},        {"SLURM_STEP_TASKS_PER_NODE", "4,2"},
          {"SLURM_STEP_NUM_NODES", "2"}};
}

TEST(RankEnvironment, UnderstandsOpenMpi) {
  const RankEnvironment env = read(open_mpi());
  EXPECT_EQ(env.rank, 3);
  EXPECT_EQ(env.world_size, 4);
  EXPECT_EQ(env.local_rank, 1);
  EXPECT_EQ(env.local_world_size, 2);
  EXPECT_EQ(env.source, "Open MPI's mpirun");
  EXPECT_EQ(env.num_threads, 4);
  EXPECT_TRUE(env.over_mpi());
  EXPECT_FALSE(env.one_host());
  EXPECT_EQ(read({{"OMPI_COMM_WORLD_SIZE", "1"},
                  {"OMPI_COMM_WORLD_RANK", "0"},
                  {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                  {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}})
                .world_size,
            1);
}

TEST(RankEnvironment, RefusesAWorldOfOneBesideOtherTasks) {
  Variables alone = {{"OMPI_COMM_WORLD_SIZE", "1"},
                     {"OMPI_COMM_WORLD_RANK", "0"},
                     {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                     {"SLURM_NTASKS", "4"}};
  EXPECT_EQ(read(alone).world_size, 1);  // mpirun -n 1 in an sbatch script
  alone["SLURM_STEP_ID"] = "0";
  alone["SLURM_STEP_NUM_TASKS"] = "4";
  EXPECT_THAT(error_of(alone), AllOf(HasSubstr("world of 1"), HasSubstr("--mpi=pmix")));
  alone["SLURM_STEP_NUM_TASKS"] = "1";
  EXPECT_EQ(read(alone).world_size, 1);
}

TEST(RankEnvironment, MeetsTwoJobsOfOpenMpiUnderOtherNames) {
  const std::set<std::string> names{
      read(open_mpi()).rendezvous, read(with(open_mpi(), "PMIX_NAMESPACE", "22958")).rendezvous,
      read(with(open_mpi(), "PMIX_SERVER_URI2", "22957.0;tcp4://127.0.0.1:2")).rendezvous};
  EXPECT_EQ(names.size(), 3u);
  EXPECT_EQ(read(open_mpi()).rendezvous,
            read(with(open_mpi(), "OMPI_COMM_WORLD_RANK", "0")).rendezvous);
  EXPECT_EQ(
      read(with(open_mpi(), "PMIX_NAMESPACE", "prterun-host-1@1")).rendezvous.find_first_of("@/ "),
      std::string::npos);
}

TEST(RankEnvironment, RefusesAnIncompleteSetOfOpenMpi) {
  for (const char* name :
       {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"}) {
    EXPECT_THAT(error_of(without(open_mpi(), name)), HasSubstr(std::string(name) + " is not set"));
  }
  EXPECT_THAT(error_of(with(open_mpi(), "OMPI_COMM_WORLD_RANK", "4")), HasSubstr("0 to 3"));
  EXPECT_THAT(error_of(with(open_mpi(), "OMPI_COMM_WORLD_LOCAL_RANK", "2")), HasSubstr("0 to 1"));
}

TEST(RankEnvironment, RefusesAWorldOfMpich) {
  EXPECT_THAT(error_of({{"PMI_SIZE", "2"}, {"PMI_RANK", "0"}}), HasSubstr("PMI_SIZE=2"));
}

TEST(RankEnvironment, UnderstandsASlurmStepOfSeveralTasks) {
  const RankEnvironment env = read(slurm());
  EXPECT_EQ(env.rank, 5);
  EXPECT_EQ(env.world_size, 6);
  EXPECT_EQ(env.local_rank, 1);
  EXPECT_EQ(env.local_world_size, 2);
  EXPECT_EQ(env.source, "Slurm's srun");
  EXPECT_EQ(read(with(slurm(), "SLURM_STEP_NUM_NODES", "1")).local_world_size, 6);
  EXPECT_FALSE(env.restarted);
  EXPECT_TRUE(read(with(slurm(), "SLURM_RESTART_COUNT", "1")).restarted);
  EXPECT_NE(read(with(slurm(), "SLURM_RESTART_COUNT", "1")).rendezvous, env.rendezvous);
  EXPECT_NE(read(with(slurm(), "SLURM_STEP_ID", "1")).rendezvous, env.rendezvous);
  EXPECT_THAT(error_of(without(slurm(), "SLURM_PROCID")), HasSubstr("SLURM_PROCID is not set"));
  EXPECT_THAT(error_of(without(slurm(), "SLURM_STEP_TASKS_PER_NODE")),
              HasSubstr("SLURM_STEP_TASKS_PER_NODE="));
}

TEST(RankEnvironment, CountsTheTasksOfANode) {
  EXPECT_EQ(tasks_of_node("4", 0), 4);
  EXPECT_EQ(tasks_of_node("4(x2),3", 1), 4);
  EXPECT_EQ(tasks_of_node("4(x2),3", 2), 3);
  for (const char* text : {"", "x", "0", "4(x2)", "-1(x9)"}) {
    EXPECT_EQ(tasks_of_node(text, 2), std::nullopt) << text;
  }
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

TEST(RankEnvironment, TakesTheFirstSourceInItsOrder) {
  Variables all = torchrun();
  for (const auto& [name, value] : slurm()) all[name] = value;
  for (const auto& [name, value] : open_mpi()) all[name] = value;
  all["TESSERA_LAUNCH_ID"] = "a";
  EXPECT_EQ(read(all).source, "tessera launch");
  all.erase("TESSERA_LAUNCH_ID");
  EXPECT_EQ(read(all).source, "torchrun");
  for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"}) all.erase(name);
  EXPECT_EQ(read(all).source, "Open MPI's mpirun");
  all.erase("OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(read(all).source, "Slurm's srun");
  all["PMI_SIZE"] = "6";
  EXPECT_EQ(read(all).source, "Slurm's srun");
  all["PMI_SIZE"] = "12";  // Hydra's, whose proxies are the tasks
  EXPECT_THAT(error_of(all), HasSubstr("PMI_SIZE=12"));
}

TEST(RankEnvironment, RefusesSeveralCopiesOfWhatRunsAsOneProcess) {
  const auto refusal = [](const Variables& variables) -> std::string {
    try {
      check_no_foreign_world(lookup_in(variables), "bench");
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(refusal(open_mpi()), AllOf(HasSubstr("4 copies of `tessera bench`")));
  EXPECT_THAT(refusal(slurm()), HasSubstr("Slurm's srun has started 6 copies"));
  EXPECT_THAT(refusal({{"PMI_SIZE", "2"}}), HasSubstr("PMI_SIZE=2"));
  EXPECT_EQ(refusal(torchrun()), "no error");
  EXPECT_EQ(refusal({}), "no error");
}

TEST(RankEnvironment, TakesNeighboursForAHostWhereToldTo) {
  EXPECT_TRUE(read(torchrun()).one_host());
  const RankEnvironment env = read(with(torchrun(), "TESSERA_RANKS_PER_HOST", "2"));
  EXPECT_FALSE(env.one_host());
  EXPECT_EQ(env.ranks_per_host, 2);
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
