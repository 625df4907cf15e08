#include "train/cores.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace tessera::train {
namespace {

namespace fs = std::filesystem;

/// A made-up /proc and /sys/fs/cgroup on a machine with 64 cores, all of them allowed.
class Cores : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "cores-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    sources_.hardware = 64;
    sources_.affinity = 64;
    sources_.cgroup_file = (root_ / "cgroup").string();
    sources_.cgroup_root = (root_ / "fs").string();
  }
  void TearDown() override { fs::remove_all(root_); }

  void groups(const std::string& text) { write("cgroup", text); }
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text << "\n";
  }

  fs::path root_;
  CoreSources sources_;
};

TEST_F(Cores, AreThoseOfTheMachineWithoutLimits) {
  EXPECT_EQ(usable_cores(sources_), 64);
}

TEST_F(Cores, ObeyTheAffinityMask) {
  sources_.affinity = 3;
  EXPECT_EQ(usable_cores(sources_), 3);
}

TEST_F(Cores, ObeyTheQuotaOfAContainer) {
  groups("0::/");
  write("fs/cpu.max", "400000 100000");
  EXPECT_EQ(usable_cores(sources_), 4);
}

TEST_F(Cores, RoundAQuotaDown) {
  groups("0::/");
  write("fs/cpu.max", "765000 100000");
  EXPECT_EQ(usable_cores(sources_), 7);
}

TEST_F(Cores, AreNeverLessThanOne) {
  groups("0::/");
  write("fs/cpu.max", "20000 100000");
  EXPECT_EQ(usable_cores(sources_), 1);
}

TEST_F(Cores, TakeMaxForNoLimit) {
  groups("0::/");
  write("fs/cpu.max", "max 100000");
  EXPECT_EQ(usable_cores(sources_), 64);
}

TEST_F(Cores, TakeTheKernelsPeriodWhereNoneIsGiven) {
  groups("0::/");
  write("fs/cpu.max", "500000");
  EXPECT_EQ(usable_cores(sources_), 5);
}

TEST_F(Cores, ObeyTheTightestOfNestedGroups) {
  groups("0::/user.slice/run.scope");
  write("fs/user.slice/cpu.max", "200000 100000");
  write("fs/user.slice/run.scope/cpu.max", "900000 100000");
  EXPECT_EQ(usable_cores(sources_), 2);
}

TEST_F(Cores, FindTheirOwnGroupUnderThePathOfTheHost) {
  groups("0::/docker/4f2a");
  write("fs/cpu.max", "300000 100000");
  EXPECT_EQ(usable_cores(sources_), 3);
}

TEST_F(Cores, DoNotLookOutsideTheMountedTree) {
  groups("0::/../other");
  write("other/cpu.max", "100000 100000");
  write("fs/cpu.max", "600000 100000");
  EXPECT_EQ(usable_cores(sources_), 6);
}

TEST_F(Cores, ObeyTheQuotaOfVersionOne) {
  groups("5:memory:/\n4:cpu,cpuacct:/job");
  write("fs/cpu,cpuacct/job/cpu.cfs_quota_us", "250000");
  write("fs/cpu,cpuacct/job/cpu.cfs_period_us", "50000");
  EXPECT_EQ(usable_cores(sources_), 5);
}

TEST_F(Cores, TakeANegativeQuotaForNoLimit) {
  groups("1:cpu:/");
  write("fs/cpu/cpu.cfs_quota_us", "-1");
  write("fs/cpu/cpu.cfs_period_us", "100000");
  EXPECT_EQ(usable_cores(sources_), 64);
}

TEST_F(Cores, DoNotTakeAnotherControllerForTheirs) {
  groups("1:cpuset:/");
  write("fs/cpuset/cpu.cfs_quota_us", "100000");
  EXPECT_EQ(usable_cores(sources_), 64);
}

TEST_F(Cores, AreAtLeastOneOnThisMachine) {
  EXPECT_GE(usable_cores(), 1);
}

}  // namespace
}  // namespace tessera::train
