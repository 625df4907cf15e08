#include "core/error.h"

#include <gtest/gtest.h>

#include <type_traits>

namespace tessera::core {
namespace {

TEST(Check, PassesInSilence) {
  EXPECT_NO_THROW(CHECK(1 + 1 == 2, "arithmetic"));
}

TEST(Check, NamesConditionPlaceAndReason) {
  try {
    CHECK(1 + 1 == 3, "arithmetic");
    FAIL() << "a false condition passed";
  } catch (const InternalError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("1 + 1 == 3"), std::string::npos) << message;
    EXPECT_NE(message.find("error_test.cpp:"), std::string::npos) << message;
    EXPECT_NE(message.find("arithmetic"), std::string::npos) << message;
    EXPECT_NE(message.find("bug in Tessera"), std::string::npos) << message;
  }
}

TEST(Check, GoesWithoutAReason) {
  try {
    CHECK(false);
    FAIL() << "a false condition passed";
  } catch (const InternalError& error) {
    EXPECT_EQ(std::string(error.what()).find("()"), std::string::npos) << error.what();
  }
}

TEST(Check, EvaluatesItsConditionOnce) {
  int evaluations = 0;
  CHECK(++evaluations > 0);
  EXPECT_EQ(evaluations, 1);
}

TEST(Check, MakesItsMessageOnlyOnFailure) {
  int made = 0;
  const auto message = [&] {
    ++made;
    return std::string("reason");
  };
  CHECK(true, message());
  EXPECT_EQ(made, 0);
  EXPECT_THROW(CHECK(false, message()), InternalError);
  EXPECT_EQ(made, 1);
}

TEST(Errors, SeparateOurFaultFromTheRunsFault) {
  EXPECT_FALSE((std::is_base_of_v<std::runtime_error, InternalError>));
  EXPECT_FALSE((std::is_base_of_v<ConfigError, RunError>));
  EXPECT_FALSE((std::is_base_of_v<RunError, CommError>));
}

}  // namespace
}  // namespace tessera::core
