#include "train/process_memory.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "toy_run.h"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;

class MachineMemory : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    const fs::path path = folder_.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }
  int64_t bytes() const {
    return machine_memory_bytes((folder_.path() / "fs").string(),
                                (folder_.path() / "cgroup").string());
  }
  TestFolder folder_;
};

TEST_F(MachineMemory, IsTheMachinesWithoutLimits) {
  EXPECT_GT(bytes(), int64_t{1} << 28);
  write("fs/memory.max", "max");
  EXPECT_GT(bytes(), int64_t{1} << 28);
}

TEST_F(MachineMemory, ObeysTheLimitOfAContainer) {
  write("fs/memory.max", "60000000");
  EXPECT_EQ(bytes(), 60'000'000);
}

TEST_F(MachineMemory, ObeysTheGroupsAroundAProcessOfEitherVersion) {
  write("cgroup", "0::/jobs/mine");
  write("fs/jobs/memory.max", "70000000");
  write("fs/jobs/mine/memory.max", "90000000");
  EXPECT_EQ(bytes(), 70'000'000);
  write("cgroup", "5:memory:/old/job");
  write("fs/memory/old/job/memory.limit_in_bytes", "50000000");
  EXPECT_EQ(bytes(), 50'000'000);
}

TEST(CheckFits, SaysWhatWouldTakeLess) {
  EXPECT_NO_THROW(check_fits(1, "it"));
  try {
    check_fits(int64_t{1} << 60, "the benchmark", 2, "Be modest");
    FAIL() << "fits";
  } catch (const core::MemoryError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("the benchmark does not fit"), std::string::npos) << text;
    EXPECT_NE(text.find("on 2 ranks together"), std::string::npos) << text;
    EXPECT_NE(text.find("Be modest"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tessera::train
