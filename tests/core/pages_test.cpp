#include "core/pages.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace tessera::core {
namespace {

TEST(MapPages, GivesZeroedPagesThatCanBeWritten) {
  for (int64_t bytes : {int64_t{1}, int64_t{4096}, int64_t{9} << 20}) {
    auto* data = static_cast<unsigned char*>(map_pages(bytes));
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(data[0], 0);
    EXPECT_EQ(data[bytes - 1], 0);
    data[bytes - 1] = 7;
    EXPECT_EQ(data[bytes - 1], 7);
    unmap_pages(data, bytes);
  }
}

TEST(MapPages, GivesNothingForNothing) {
  EXPECT_EQ(map_pages(0), nullptr);
  unmap_pages(nullptr, 0);
}

TEST(MapPages, SaysHowMuchWasRefusedAndWhatToDo) {
  constexpr int64_t kMoreThanAnyMachine = int64_t{1} << 60;
  try {
    map_pages(kMoreThanAnyMachine);
    FAIL() << "the system has 2^60 bytes";
  } catch (const RunError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(std::to_string(kMoreThanAnyMachine)), std::string::npos) << message;
    EXPECT_NE(message.find("micro_batch_size"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace tessera::core
