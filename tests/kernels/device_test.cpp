#include "kernels/device.h"

#include <gtest/gtest.h>

#include <thread>

namespace tessera::kernels {
namespace {

TEST(IsaLimit, LowersAndNeverRaises) {
  const Isa whole = isa();
  {
    const IsaLimit low(Isa::ref);
    EXPECT_EQ(isa(), Isa::ref);
    const IsaLimit high(Isa::avx512);
    EXPECT_EQ(isa(), Isa::ref);
  }
  EXPECT_EQ(isa(), whole);
}

TEST(IsaLimit, HoldsForItsOwnThreadAlone) {
  const Isa whole = isa();
  const IsaLimit low(Isa::ref);
  Isa elsewhere = Isa::ref;
  std::thread([&] { elsewhere = isa(); }).join();
  EXPECT_EQ(elsewhere, whole);
}

TEST(Device, SaysWhatItChose) {
  set_num_threads(1);
  const std::string said = describe_device();
  EXPECT_NE(said.find("oneDNN"), std::string::npos) << said;
  EXPECT_NE(said.find(", 1 thread"), std::string::npos) << said;
  const IsaLimit low(Isa::ref);
  EXPECT_NE(describe_device().find("reference kernels"), std::string::npos);
}

TEST(Device, HasNoNativeBf16WithoutAvx512) {
  const IsaLimit low(Isa::avx2);
  EXPECT_FALSE(has_native_bf16());
}

TEST(Threads, AreTheCallingThreadsOwn) {
  set_num_threads(2);
  std::thread([] { set_num_threads(1); }).join();
  EXPECT_EQ(num_threads(), 2);
  set_num_threads(0);
  EXPECT_EQ(num_threads(), 1);
  set_num_threads(2);
}

}  // namespace
}  // namespace tessera::kernels
