#include "formats/toml_leaves.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tessera::formats {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ReadToml, GivesKeysInTheOrderOfTheText) {
  const TomlLeaves read = read_toml("b = 1\n[t]\nz = [\"x\", \"y\"]\na.c = 2.5\n[e]\n");
  ASSERT_FALSE(read.error);
  std::vector<std::string> keys;
  for (const TomlLeaf& leaf : read.leaves) keys.push_back(leaf.key);
  EXPECT_THAT(keys, ElementsAre("b", "t.z", "t.a.c", "e"));
  EXPECT_THAT(read.leaves[1].items, ElementsAre("x", "y"));
  EXPECT_EQ(read.leaves[2].text, "2.5");
  EXPECT_EQ(read.leaves[2].line, 4u);
  EXPECT_TRUE(read.leaves[3].table);
  EXPECT_THAT(read.leaves[3].items, IsEmpty());
}

TEST(ReadToml, TellsLineAndColumnOfWhatIsNoToml) {
  const TomlLeaves read = read_toml("a = 1\nb = = 2\n");
  ASSERT_TRUE(read.error);
  EXPECT_EQ(read.error->line, 2u);
  EXPECT_GT(read.error->column, 1u);
}

TEST(ReadToml, RefusesATableWhoseNameIsNone) {
  for (const char* text :
       {"[=]\n", "[.a]\n", "[\n]", "[ #]\n", "[[=]]", "[\x01]", "a = 1\n[:b]\n"}) {
    EXPECT_TRUE(read_toml(text).error) << text;
  }
}

TEST(ReadToml, TakesLettersBeyondAsciiWhereTextsMayHaveThem) {
  const TomlLeaves read =
      read_toml("\"\xc3\xa9\" = \"\xd2\x97\"  # \xc3\xa9\nb = \"\"\"x\\\n  \xc3\xa9\"\"\"\n");
  ASSERT_FALSE(read.error) << read.error->why;
  EXPECT_EQ(read.leaves[0].key, "\xc3\xa9");
  EXPECT_EQ(read.leaves[1].items[0], "x\xc3\xa9");
  EXPECT_TRUE(read_toml("a\xd2\x97 = 1\n").error);
}

}  // namespace
}  // namespace tessera::formats
