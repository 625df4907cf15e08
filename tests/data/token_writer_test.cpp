#include "data/token_writer.h"

#include <sys/resource.h>

#include <csignal>

#include "data/token_file.h"
#include "support.h"
#include "token_files.h"

namespace tessera::data {
namespace {

using testing::all_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Ids;
using ::testing::IsEmpty;
using testing::raw_file;
using testing::read_file;
using testing::RefusesWith;
using testing::TemporaryFolder;
using ::testing::ThrowsMessage;
using testing::written;

TEST(TokenFileWriter, WritesLlmcsBytes) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_file(written(folder, {5, 256, 65535}, 65536)),
            raw_file({20240520, 1, 3}, std::string("\x05\0\x00\x01\xFF\xFF", 6)));
  EXPECT_EQ(read_file(written(folder, {5, 128000}, 128256)),
            raw_file({20240801, 7, 2}, std::string("\x05\0\0\0\x00\xF4\x01\0", 8)));
}

TEST(TokenFileWriter, GivesBackWhatWasAppendedInParts) {
  const TemporaryFolder folder;
  std::mt19937 random(8);
  for (const int64_t vocab_size : {257, 65536, 65537, 200000}) {
    const std::string path = folder / "parts.bin";
    TokenFileWriter writer(path, vocab_size);
    Ids all;
    for (int part = 0; part < 20; ++part) {
      Ids ids(random() % 100'000);
      for (int32_t& id : ids) id = static_cast<int32_t>(random() % vocab_size);
      writer.append(ids);
      all.insert(all.end(), ids.begin(), ids.end());
    }
    writer.finish();
    const TokenFile file(path);
    EXPECT_EQ(file.token_bytes(), vocab_size <= 65536 ? 2 : 4);
    EXPECT_EQ(all_of(file), all);
    EXPECT_NO_THROW(file.check_ids(vocab_size));
    Ids middle(1000);
    file.read(4321, middle);
    EXPECT_TRUE(std::equal(middle.begin(), middle.end(), all.begin() + 4321));
  }
}

TEST(TokenFileWriter, RefusesALargeVocabularyInUint16) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { TokenFileWriter(folder / "t.bin", 128256, TokenWidth::u16); },
              RefusesWith("128256", "65535", "uint32"));
  EXPECT_THAT(folder.files(), IsEmpty());
}

TEST(TokenFileWriter, RefusesIdsBeyondTheVocabulary) {
  const TemporaryFolder folder;
  TokenFileWriter writer(folder / "t.bin", 100);
  writer.append(Ids{1, 2});
  EXPECT_THAT([&] { writer.append(Ids{3, 100}); }, RefusesWith("Token 100 at place 3"));
  EXPECT_THAT([&] { writer.append(Ids{-1}); }, RefusesWith("Token -1"));
}

TEST(TokenFileWriter, LeavesTheOldFileUntilTheNewOneIsWhole) {
  const TemporaryFolder folder;
  const std::string before = read_file(written(folder, {1, 2, 3}, 100));
  {
    TokenFileWriter writer(folder / "t.bin", 100);
    writer.append(Ids(1'000'000, 7));
    EXPECT_EQ(read_file(folder / "t.bin"), before);
  }  // dropped without finish(), as by an exception
  EXPECT_EQ(read_file(folder / "t.bin"), before);
  EXPECT_THAT(folder.files(), ElementsAre("t.bin"));
}

TEST(TokenFileWriter, SaysWhenItsFolderIsMissing) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { TokenFileWriter(folder / "no/t.bin", 100); },
              RefusesWith("no/t.bin", "No such file", "folder must exist"));
  EXPECT_THAT([&] { TokenFileWriter(folder.path(), 100); }, RefusesWith("it is a folder"));
}

TEST(TokenFileWriter, KeepsTheOldFileWhenTheDiskRefusesMore) {
  const TemporaryFolder folder;
  const std::string before = read_file(written(folder, {1, 2, 3}, 100));
  // A limit on file size stands for a full disk.
  rlimit old_limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &old_limit), 0);
  const rlimit limit{1 << 20, old_limit.rlim_max};
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_THAT(
      [&] {
        TokenFileWriter writer(folder / "t.bin", 100);
        for (int i = 0; i < 10; ++i) writer.append(Ids(1'000'000, 7));
        writer.finish();
      },
      ThrowsMessage<core::RunError>(HasSubstr("unchanged")));
  ::setrlimit(RLIMIT_FSIZE, &old_limit);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_EQ(read_file(folder / "t.bin"), before);
  EXPECT_THAT(folder.files(), ElementsAre("t.bin"));
}

std::vector<std::string> sharded(const std::string& path, const std::vector<Ids>& documents,
                                 const ShardOptions& options) {
  TokenShardWriter writer(path, 1000, options);
  for (const Ids& document : documents) writer.append_document(document);
  return writer.finish();
}

Ids ids_in(const std::string& path) {
  return all_of(TokenFile(path));
}

TEST(TokenShardWriter, EndsShardsWithDocuments) {
  const TemporaryFolder folder;
  ShardOptions options;
  options.shard_tokens = 5;
  const auto files =
      sharded(folder / "train.bin", {{1, 2, 3}, {4, 5}, {6}, {7, 8, 9, 10, 11}}, options);
  EXPECT_THAT(files, ElementsAre(folder / "train_000001.bin", folder / "train_000002.bin",
                                 folder / "train_000003.bin"));
  EXPECT_THAT(ids_in(files[0]), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(ids_in(files[1]), ElementsAre(6));
  EXPECT_THAT(ids_in(files[2]), ElementsAre(7, 8, 9, 10, 11));
}

TEST(TokenShardWriter, CutsDocumentsThatAreLongerThanAShard) {
  const TemporaryFolder folder;
  ShardOptions options;
  options.shard_tokens = 2;
  const auto files = sharded(folder / "train.bin", {{1}, {2, 3, 4, 5, 6}, {7}}, options);
  ASSERT_EQ(files.size(), 4u);
  EXPECT_THAT(ids_in(files[0]), ElementsAre(1));
  EXPECT_THAT(ids_in(files[1]), ElementsAre(2, 3));
  EXPECT_THAT(ids_in(files[2]), ElementsAre(4, 5));
  EXPECT_THAT(ids_in(files[3]), ElementsAre(6, 7));
}

TEST(TokenShardWriter, BeginsToNumberWhenOneFileCannotHoldAll) {
  const TemporaryFolder folder;
  ShardOptions options;
  options.most_tokens = 3;  // stands for 2^31 − 1
  EXPECT_THAT(sharded(folder / "one.bin", {{1, 2}, {3}}, options), ElementsAre(folder / "one.bin"));
  const auto files = sharded(folder / "two.bin", {{1, 2}, {3}, {4}}, options);
  EXPECT_THAT(files, ElementsAre(folder / "two_000001.bin", folder / "two_000002.bin"));
  EXPECT_THAT(ids_in(files[0]), ElementsAre(1, 2, 3));
  EXPECT_FALSE(std::filesystem::exists(folder / "two.bin"));
}

TEST(TokenShardWriter, RefusesShardsThatNoHeaderCanCount) {
  const TemporaryFolder folder;
  ShardOptions options;
  options.shard_tokens = int64_t{1} << 31;
  EXPECT_THAT([&] { TokenShardWriter(folder / "t.bin", 100, options); },
              RefusesWith("2147483648", "2147483647"));
}

}  // namespace
}  // namespace tessera::data
