#include "core/fault.h"

#include <gtest/gtest.h>

namespace tessera::core {
namespace {

// Everything but tessera-faults is compiled so that a fault costs nothing, this test too.
static_assert(!TESSERA_FAULT("skip_reduction"));

TEST(Fault, NeverHappensInAnOrdinaryBuild) {
  EXPECT_FALSE(TESSERA_FAULT("skip_reduction"));
}

}  // namespace
}  // namespace tessera::core
