#include "cli/byte_size.h"

#include <gtest/gtest.h>

namespace tessera::cli {
namespace {

TEST(ByteSize, TakesNumbersWithAUnit) {
  EXPECT_EQ(parse_bytes("8"), 8);
  EXPECT_EQ(parse_bytes("4K"), 4096);
  EXPECT_EQ(parse_bytes("4k"), 4096);
  EXPECT_EQ(parse_bytes("64M"), 64 << 20);
  EXPECT_EQ(parse_bytes("64MB"), 64 << 20);
  EXPECT_EQ(parse_bytes("64MiB"), 64 << 20);
  EXPECT_EQ(parse_bytes("1G"), int64_t{1} << 30);
  EXPECT_EQ(parse_bytes("1.5K"), 1536);
  EXPECT_EQ(parse_bytes("8B"), 8);
}

TEST(ByteSize, RefusesWhatIsNoSize) {
  for (const char* text :
       {"", "0", "-1", "M", "64Q", "64MM", "1..5K", ".", "0x10", "1e3", " 8", "99999999G"}) {
    EXPECT_EQ(parse_bytes(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tessera::cli
