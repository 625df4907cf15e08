#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/error.h"
#include "train/generate.h"

namespace tessera::train {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(Sampling, RefusesLogitsThatAreNotFinite) {
  for (const float wrong :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    for (const double temperature : {0.0, 0.8}) {
      SamplingOptions options;
      options.temperature = temperature;
      EXPECT_THAT([&] { sample_token({1, 2, wrong, 0}, options, 7); },
                  ThrowsMessage<core::RunError>(HasSubstr("not finite: token 2")));
    }
  }
}

TEST(Sampling, TakesTheLikeliestAtNoTemperature) {
  SamplingOptions options;
  options.temperature = 0;
  EXPECT_EQ(sample_token({1, 3, 2}, options, 0), 1);
}

}  // namespace
}  // namespace tessera::train
