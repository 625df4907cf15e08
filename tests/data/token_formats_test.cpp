// nanoGPT's and Megatron's token files, and how a file's format is found out.

#include <cstring>

#include "data/corpus.h"
#include "data/token_file.h"
#include "support.h"

namespace tessera::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::RefusesWith;
using testing::TemporaryFolder;
using Ids = std::vector<int32_t>;

constexpr int32_t kEnd = 256;  // the separator of the byte tokenizer

template <class T>
std::string packed(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

Ids all_of(const TokenFile& file) {
  Ids ids(static_cast<size_t>(file.num_tokens()));
  file.read(0, ids);
  return ids;
}

/// Megatron's index, as its own writer lays it out.
struct Index {
  uint64_t version = 1;
  uint8_t code = 8;
  std::vector<int32_t> lengths;
  std::vector<int64_t> pointers;
  std::vector<int64_t> bounds;
  std::string modes;

  std::string bytes() const {
    return std::string("MMIDIDX\0\0", 9) + packed<uint64_t>({version}) +
           std::string(1, static_cast<char>(code)) +
           packed<uint64_t>({lengths.size(), bounds.size()}) + packed(lengths) + packed(pointers) +
           packed(bounds) + modes;
  }
};

/// Two documents: 1 2 3 in two sequences, and 4 5.
Index small_index() {
  return {1, 8, {2, 1, 2}, {0, 4, 6}, {0, 2, 3}, ""};
}

void write_megatron(const TemporaryFolder& folder, const Index& index,
                    const std::string& tokens = packed<uint16_t>({1, 2, 3, 4, 5})) {
  folder.write("m.idx", index.bytes());
  folder.write("m.bin", tokens);
}

TEST(NanoGptFile, IsReadByItsShape) {
  const TemporaryFolder folder;
  const std::string path = folder.write("train.bin", packed<uint16_t>({15496, 50256, 0, 7}));
  const TokenFile file(path, {DataFormat::automatic, 50257, 50256});
  EXPECT_EQ(file.format(), DataFormat::nanogpt);
  EXPECT_THAT(all_of(file), ElementsAre(15496, 50256, 0, 7));
}

TEST(NanoGptFile, IsRefusedWhereItMayBeSomethingElse) {
  const TemporaryFolder folder;
  const auto open = [&](const std::string& bytes, int64_t vocab_size) {
    TokenFile(folder.write("x.bin", bytes), {DataFormat::automatic, vocab_size, -1});
  };
  EXPECT_THAT([&] { open("abc", 50257); }, RefusesWith("odd number", "data.format", "nanogpt"));
  EXPECT_THAT([&] { open("This is text.\n", 50257); }, RefusesWith("may be text", "--format"));
  EXPECT_THAT([&] { open(packed<uint16_t>({1, 50256}), 257); },
              RefusesWith("token 1 would have id 50256", "ends at 256"));
  EXPECT_THAT([&] { open(packed<uint32_t>({100'000, 5'000, 70'000, 9'999}), 65536); },
              RefusesWith("32-bit ids", "uint16"));
}

TEST(NanoGptFile, IsNoRowOfWiderIds) {
  const TemporaryFolder folder;
  const auto open = [&](const std::string& bytes) {
    return TokenFile(folder.write("x.bin", bytes), {DataFormat::automatic, 257, -1}).num_tokens();
  };
  EXPECT_THAT([&] { open(packed<int64_t>({104, 101, 2, 108, 0, 256})); },
              RefusesWith("64-bit ids", "three of four", "astype(\"uint16\")"));
  EXPECT_THAT([&] { open(packed<int32_t>({104, 101, 2, 108, 0, 256})); },
              RefusesWith("32-bit ids", "every other"));
  // Cut in an id's middle, as where a copy ended early.
  EXPECT_THAT([&] { open(packed<int64_t>({104, 101, 108, 99}).substr(0, 30)); },
              RefusesWith("64-bit ids"));
  EXPECT_EQ(open(packed<uint16_t>({104, 0, 0, 7, 105, 0, 0, 1, 106, 0, 7, 0})), 12);
  EXPECT_EQ(open(packed<uint16_t>({104})), 1);
}

TEST(NanoGptFile, IsNoModelFileOfLlmc) {
  const TemporaryFolder folder;
  const std::string path = folder.write("gpt2_124M.bin", packed<int32_t>({20240326, 3, 1024}));
  EXPECT_THAT([&] { TokenFile(path, {DataFormat::automatic, 50257, -1}); },
              RefusesWith("model file of llm.c", "training.load"));
  EXPECT_THAT([&] { TokenFile(path, {DataFormat::llmc, 50257, -1}); },
              RefusesWith("model file of llm.c"));
}

TEST(NanoGptFile, IsTakenAsWhatTheUserSaysItIs) {
  const TemporaryFolder folder;
  const std::string path = folder.write("x.bin", "This is tex.");
  EXPECT_EQ(TokenFile(path, {DataFormat::nanogpt, 50257, -1}).num_tokens(), 6);
  EXPECT_THAT([&] { TokenFile(path, {DataFormat::llmc, 50257, -1}); }, RefusesWith("20240520"));
  const Corpus as_text = load_corpus({{path}, Tokenizer::bytes(), DataFormat::text});
  EXPECT_EQ(as_text.tokens->size(), 13);
}

TEST(NanoGptFile, HoldsMoreThanTwoToThe31Tokens) {
  const TemporaryFolder folder;
  const int64_t num_tokens = (int64_t{1} << 31) + 5;
  const std::string path = folder.write("big.bin", packed<uint16_t>({5, 0}));
  std::filesystem::resize_file(path, 2 * static_cast<uint64_t>(num_tokens));
  const TokenFile file(path, {DataFormat::nanogpt, 50257, -1});
  EXPECT_EQ(file.num_tokens(), num_tokens);
  Ids last(2, -1);
  file.read(num_tokens - 2, last);
  EXPECT_THAT(last, ElementsAre(0, 0));
}

TEST(MegatronFile, IsFoundByEitherNameOrByTheirPrefix) {
  const TemporaryFolder folder;
  write_megatron(folder, small_index());
  for (const std::string name : {"m.bin", "m.idx", "m"}) {
    const TokenFile file(folder / name, {DataFormat::automatic, 257, -1});
    EXPECT_EQ(file.format(), DataFormat::megatron);
    EXPECT_EQ(file.path(), folder / "m.bin");
    EXPECT_EQ(file.num_documents(), 2);
    EXPECT_THAT(all_of(file), ElementsAre(1, 2, 3, 4, 5)) << name;
  }
}

TEST(MegatronFile, ReadsEveryIntegerType) {
  const TemporaryFolder folder;
  const auto read_as = [&](uint8_t code, int64_t width, const std::string& tokens) {
    Index index = small_index();
    index.code = code;
    index.pointers = {0, 2 * width, 3 * width};
    write_megatron(folder, index, tokens);
    return all_of(TokenFile(folder / "m.idx"));
  };
  const auto expected = ElementsAre(1, 2, 3, 4, 5);
  EXPECT_THAT(read_as(1, 1, packed<uint8_t>({1, 2, 3, 4, 5})), expected);
  EXPECT_THAT(read_as(2, 1, packed<int8_t>({1, 2, 3, 4, 5})), expected);
  EXPECT_THAT(read_as(3, 2, packed<int16_t>({1, 2, 3, 4, 5})), expected);
  EXPECT_THAT(read_as(4, 4, packed<int32_t>({1, 2, 3, 4, 5})), expected);
  EXPECT_THAT(read_as(5, 8, packed<int64_t>({1, 2, 3, 4, 5})), expected);
  EXPECT_THAT(read_as(8, 2, packed<uint16_t>({1, 2, 3, 4, 5})), expected);
  EXPECT_THAT([&] { read_as(6, 8, std::string(40, '\0')); }, RefusesWith("floating-point"));
  EXPECT_THAT([&] { read_as(9, 8, std::string(40, '\0')); }, RefusesWith("type code 9"));
}

TEST(MegatronFile, TakesSequencesWhereTheirPointersSay) {
  const TemporaryFolder folder;
  Index index = small_index();
  index.pointers = {6, 4, 0};
  index.modes = std::string(3, '\0');
  write_megatron(folder, index);
  EXPECT_THAT(all_of(TokenFile(folder / "m.idx")), ElementsAre(4, 5, 3, 1, 2));
}

TEST(MegatronFile, EndsDocumentsOfTheIndexWithTheSeparator) {
  const TemporaryFolder folder;
  write_megatron(folder, small_index());
  const Corpus corpus = load_corpus({{folder / "m.bin"}, Tokenizer::bytes()});
  Ids ids(7);
  corpus.tokens->read(0, ids);
  EXPECT_THAT(ids, ElementsAre(1, 2, 3, kEnd, 4, 5, kEnd));
  EXPECT_THAT(corpus.warnings, ElementsAre(HasSubstr("2 of 2 documents")));
  // Any cut of the stream is the same.
  for (int64_t first = 0; first < 7; ++first) {
    for (int64_t count = 0; count <= 7 - first; ++count) {
      Ids part(static_cast<size_t>(count));
      corpus.tokens->read(first, part);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), ids.begin() + first));
    }
  }
}

TEST(MegatronFile, AddsNoSeparatorWhereThereIsOne) {
  const TemporaryFolder folder;
  write_megatron(folder, small_index(), packed<uint16_t>({1, 2, kEnd, 4, kEnd}));
  const Corpus corpus = load_corpus({{folder / "m"}, Tokenizer::bytes()});
  EXPECT_EQ(corpus.tokens->size(), 5);
  EXPECT_THAT(corpus.warnings, IsEmpty());
}

TEST(MegatronFile, TellsOfBytesThatItsIndexDoesNotHave) {
  const TemporaryFolder folder;
  write_megatron(folder, small_index(), packed<uint16_t>({1, 2, kEnd, 4, kEnd, 5, 6, 7}));
  const Corpus corpus = load_corpus({{folder / "m"}, Tokenizer::bytes()});
  EXPECT_THAT(corpus.warnings, ElementsAre(HasSubstr("6 bytes of")));
}

TEST(MegatronFile, NamesIdsBeyondTheVocabularyWithTheirOffset) {
  const TemporaryFolder folder;
  Index index = small_index();
  index.code = 5;
  index.pointers = {0, 16, 24};
  write_megatron(folder, index, packed<int64_t>({1, 2, 3, 4, int64_t{1} << 40}));
  EXPECT_THAT([&] { load_corpus({{folder / "m.bin"}, Tokenizer::bytes()}); },
              RefusesWith("m.bin", "id 1099511627776 as token 5", "byte 32"));
  index.code = 4;
  index.pointers = {0, 8, 12};
  write_megatron(folder, index, packed<int32_t>({1, -7, 3, 4, 5}));
  EXPECT_THAT([&] { load_corpus({{folder / "m.bin"}, Tokenizer::bytes()}); },
              RefusesWith("id -7 as token 1"));
}

TEST(MegatronFile, LiesBeyondFourGigabytes) {
  const TemporaryFolder folder;
  Index index = small_index();
  const int64_t far = int64_t{5} << 30;
  index.pointers = {0, 4, far};
  write_megatron(folder, index);
  std::filesystem::resize_file(folder / "m.bin", static_cast<uint64_t>(far) + 4);
  EXPECT_THAT(all_of(TokenFile(folder / "m.idx")), ElementsAre(1, 2, 3, 0, 0));
}

TEST(MegatronFile, RefusesAnIndexThatLies) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::function<void(Index&)>& change, const std::string& why) {
    Index index = small_index();
    change(index);
    write_megatron(folder, index);
    EXPECT_THAT([&] { TokenFile(folder / "m.bin"); }, RefusesWith("m.idx", why));
  };
  refused([](Index& index) { index.version = 2; }, "version 2");
  refused([](Index& index) { index.modes = "x"; }, "not what its header says");
  refused([](Index& index) { index.lengths[0] = -1; }, "sequence 0");
  refused([](Index& index) { index.lengths[2] = 3; }, "sequence 2 is 3 ids of 2 bytes from byte 6");
  refused([](Index& index) { index.pointers[1] = -2; }, "sequence 1");
  refused([](Index& index) { index.pointers[1] = INT64_MAX; }, "sequence 1");
  refused([](Index& index) { index.pointers = {0, 4, 0}, index.lengths = {5, 1, 5}; }, "in all");
  refused([](Index& index) { index.pointers = {0, 3, 6}; }, "sequence 1 starts at byte 3");
  refused([](Index& index) { index.pointers = {0, 4, 4}; }, "sequences 1 and 2 share byte 4");
  refused([](Index& index) { index.pointers = {2, 8, 0}; }, "sequences 0 and 2 share byte 2");
  refused([](Index& index) { index.bounds = {0, 3, 2}; }, "document bound 2 = 2");
  refused([](Index& index) { index.bounds = {0, 2, 9}; }, "document bound 2 = 9");
  refused([](Index& index) { index.bounds = {1, 2, 3}; }, "document bound 0 = 1");
  refused([](Index& index) { index.bounds = {0, 2}; }, "end with sequence 2");
  refused([](Index& index) { index.bounds = {}; }, "end with sequence 0");
}

TEST(MegatronFile, RefusesALyingCountBeforeAnythingIsMade) {
  const TemporaryFolder folder;
  write_megatron(folder, small_index());
  const std::string whole = small_index().bytes();
  for (const uint64_t lie : {uint64_t{4}, uint64_t{1} << 40, ~uint64_t{0}}) {
    for (const size_t at : {size_t{18}, size_t{26}}) {
      std::string bytes = whole;
      std::memcpy(bytes.data() + at, &lie, sizeof lie);
      folder.write("m.idx", bytes);
      EXPECT_THAT([&] { TokenFile(folder / "m.bin"); },
                  RefusesWith("not what its header says", std::to_string(lie)));
    }
  }
  for (size_t size = 0; size < whole.size(); ++size) {
    folder.write("m.idx", whole.substr(0, size));
    EXPECT_THAT([&] { TokenFile(folder / "m.bin"); }, RefusesWith("m.idx"));
  }
}

TEST(MegatronFile, NamesTheFileThatIsMissing) {
  const TemporaryFolder folder;
  folder.write("m.idx", small_index().bytes());
  EXPECT_THAT([&] { TokenFile(folder / "m.idx"); }, RefusesWith("m.bin", "No such file"));
  folder.write("n.idx", "something else");
  folder.write("n.bin", "1234");
  EXPECT_THAT([&] { TokenFile(folder / "n.bin"); }, RefusesWith("n.idx", "MMIDIDX"));
}

}  // namespace
}  // namespace tessera::data
