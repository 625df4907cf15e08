#include "data/token_file.h"

#include "data/token_writer.h"
#include "support.h"
#include "token_files.h"

namespace tessera::data {
namespace {

using testing::all_of;
using ::testing::ElementsAre;
using testing::Ids;
using testing::raw_file;
using testing::read_file;
using testing::RefusesWith;
using testing::TemporaryFolder;
using testing::written;

TEST(TokenFile, ReadsLlmcsUint16Bytes) {
  const TemporaryFolder folder;
  // 88 D8 34 01 is 20240520.
  std::string bytes(1024, '\0');
  bytes.replace(0, 12, std::string("\x88\xD8\x34\x01\x01\0\0\0\x03\0\0\0", 12));
  bytes += std::string("\x05\0\x00\x01\xFF\xFF", 6);
  const TokenFile file(folder.write("llmc.bin", bytes));
  EXPECT_EQ(file.token_bytes(), 2);
  EXPECT_THAT(all_of(file), ElementsAre(5, 256, 65535));
}

TEST(TokenFile, ReadsLlmcsUint32Bytes) {
  const TemporaryFolder folder;
  // A1 D9 34 01 is 20240801.
  std::string bytes(1024, '\0');
  bytes.replace(0, 12, std::string("\xA1\xD9\x34\x01\x07\0\0\0\x02\0\0\0", 12));
  bytes += std::string("\x05\0\0\0\x00\xF5\x01\0", 8);
  const TokenFile file(folder.write("llmc.bin", bytes));
  EXPECT_EQ(file.token_bytes(), 4);
  EXPECT_THAT(all_of(file), ElementsAre(5, 128256));
}

TEST(TokenFile, NamesATruncatedFileWithExpectedAndActualBytes) {
  const TemporaryFolder folder;
  const std::string whole = read_file(written(folder, Ids(1000, 7), 100));
  for (const size_t bytes : {size_t{1024}, size_t{1025}, size_t{3022}, size_t{3023}}) {
    const std::string path = folder.write("cut.bin", whole.substr(0, bytes));
    EXPECT_THAT([&] { TokenFile{path}; }, RefusesWith("cut.bin", "truncated", "3024 bytes in all",
                                                      "has " + std::to_string(bytes)));
  }
  for (const size_t bytes : {size_t{4}, size_t{1023}}) {
    const std::string path = folder.write("cut.bin", whole.substr(0, bytes));
    EXPECT_THAT([&] { TokenFile{path}; }, RefusesWith("truncated", std::to_string(bytes)));
  }
}

TEST(TokenFile, RefusesBytesAfterTheLastToken) {
  const TemporaryFolder folder;
  const std::string whole = read_file(written(folder, {1, 2}, 100));
  EXPECT_THAT([&] { TokenFile{folder.write("long.bin", whole + "xx")}; },
              RefusesWith("after its last token", "1028", "1030"));
}

TEST(TokenFile, TellsAnEvalFileFromTokens) {
  const TemporaryFolder folder;
  const std::string path = folder.write("eval.bin", raw_file({20240522, 1, 10, 100}, "\xFF\xFF"));
  EXPECT_THAT([&] { TokenFile{path}; }, RefusesWith("multiple-choice evaluation"));
  EXPECT_TRUE(has_llmc_magic(read_file(path)));
}

TEST(TokenFile, RefusesOtherFilesAndVersions) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { TokenFile{folder.write("a.bin", "some text")}; }, RefusesWith("magic number"));
  EXPECT_EQ(TokenFile{folder.write("b.bin", "")}.num_tokens(), 0);  // load_corpus refuses it
  std::string damaged = raw_file({20240519, 1, 3}, "123456");
  EXPECT_THAT([&] { TokenFile{folder.write("d.bin", damaged)}; }, RefusesWith("damaged header"));
  EXPECT_THAT([&] { TokenFile{folder.write("c.bin", raw_file({20240520, 7, 0}, ""))}; },
              RefusesWith("version 7"));
  EXPECT_THAT([&] { TokenFile{folder.write("d.bin", raw_file({20240801, 1, 0}, ""))}; },
              RefusesWith("version 1"));
  EXPECT_THAT([&] { TokenFile{folder / "none.bin"}; }, RefusesWith("none.bin", "No such file"));
  EXPECT_FALSE(has_llmc_magic("some text"));
}

TEST(TokenFile, NamesTheFirstIdBeyondTheVocabularyWithItsOffset) {
  const TemporaryFolder folder;
  Ids ids(200'000, 7);
  ids[150'000] = 300;
  ids[150'001] = 400;
  const TokenFile narrow(written(folder, ids, 1000));
  EXPECT_NO_THROW(narrow.check_ids(401));
  EXPECT_THAT([&] { narrow.check_ids(300); },
              RefusesWith("id 300 as token 150000", "byte 301024", "ends at 299"));
  const TokenFile wide(folder.write("wide.bin", raw_file({20240801, 7, 1}, "\xFF\xFF\xFF\xFF")));
  EXPECT_THAT([&] { wide.check_ids(128256); }, RefusesWith("id 4294967295 as token 0"));
}

/// Over 2^31 tokens, in a file that has them as a hole.
std::string sparse_file(const TemporaryFolder& folder, uint32_t low, uint32_t high,
                        int64_t num_tokens) {
  const std::string path = folder.write("sparse.bin", raw_file({20240520, 1, low, high}, ""));
  std::filesystem::resize_file(path, 1024 + 2 * static_cast<uint64_t>(num_tokens));
  return path;
}

TEST(TokenFile, HoldsMoreThanTwoToThe31Tokens) {
  const TemporaryFolder folder;
  const int64_t num_tokens = (int64_t{1} << 32) + 5;
  const TokenFile ours(sparse_file(folder, 5, 1, num_tokens));
  EXPECT_EQ(ours.num_tokens(), num_tokens);
  Ids last(3, -1);
  ours.read(num_tokens - 3, last);
  EXPECT_THAT(last, ElementsAre(0, 0, 0));
}

TEST(TokenFile, TakesTheCountFromTheSizeWhereAnotherWriterLetItOverflow) {
  const TemporaryFolder folder;
  const int64_t num_tokens = (int64_t{1} << 32) + 5;
  EXPECT_EQ(TokenFile(sparse_file(folder, 5, 0, num_tokens)).num_tokens(), num_tokens);
  EXPECT_THAT([&] { TokenFile{sparse_file(folder, 6, 0, num_tokens)}; }, RefusesWith("6 tokens"));
}

TEST(TokenFile, RefusesALyingCountBeforeAnythingIsMade) {
  const TemporaryFolder folder;
  for (const uint32_t high : {0u, 1u, 0x7FFFFFFFu, 0xFFFFFFFFu}) {
    const std::string path =
        folder.write("lie.bin", raw_file({20240801, 7, 0xFFFFFFFFu, high}, "1234"));
    EXPECT_THAT([&] { TokenFile{path}; }, RefusesWith("lie.bin", "tokens"));
  }
}

TEST(TokenFile, ReadsOrRefusesAnyDamagedFile) {
  const TemporaryFolder folder;
  const std::string good = read_file(written(folder, Ids(100, 7), 100));
  std::mt19937 random(9);
  int opened = 0;
  for (int round = 0; round < 1000; ++round) {
    std::string bytes = good;
    if (random() % 2 == 0) bytes.resize(random() % (good.size() + 100));
    for (uint32_t edits = random() % 3; edits > 0 && !bytes.empty(); --edits) {
      // Half of the edits fall on the words that count.
      const size_t within = random() % 2 == 0 ? std::min<size_t>(16, bytes.size()) : bytes.size();
      bytes[random() % within] = static_cast<char>(random());
    }
    const std::string path = folder.write("damaged.bin", bytes);
    try {
      const TokenFile file(path, {DataFormat::llmc, 100, -1});
      ++opened;
      EXPECT_EQ(1024 + file.num_tokens() * file.token_bytes(), static_cast<int64_t>(bytes.size()));
      EXPECT_EQ(all_of(file).size(), static_cast<size_t>(file.num_tokens()));
      file.check_ids(100);
    } catch (const core::ConfigError&) {
    }
  }
  EXPECT_GT(opened, 0);
}

}  // namespace
}  // namespace tessera::data
