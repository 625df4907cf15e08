// The stub that takes Open MPI's place, whether or not this build has Open MPI.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/mpi/world.h"
#include "core/error.h"

namespace tessera::comm {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(WithoutOpenMpi, SaysWhatToInstall) {
  EXPECT_FALSE(MpiWorld::built_in());
  EXPECT_THAT(MpiWorld::library(), AllOf(HasSubstr("no Open MPI"), HasSubstr("libopenmpi-dev"),
                                         HasSubstr("openmpi-bin"), HasSubstr("build again")));
}

TEST(WithoutOpenMpi, JoiningAWorldIsAConfigErrorOfOneLine) {
  try {
    MpiWorld::join();
    FAIL() << "joined";
  } catch (const core::ConfigError& error) {
    EXPECT_EQ(std::string(error.what()), MpiWorld::library());
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace tessera::comm
