#include "data/documents.h"

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "data/json_text.h"
#include "support.h"

namespace tessera::data {
namespace {

using ::testing::ElementsAre;
using testing::RefusesWith;
using testing::TemporaryFolder;

std::vector<std::string> documents_of(const std::string& path) {
  std::vector<std::string> documents;
  for_each_document(path, [&](std::string_view text) { documents.emplace_back(text); });
  return documents;
}

std::string text_of(std::string_view line) {
  const JsonText parsed = json_text(line, "text");
  return parsed.text ? *parsed.text : "fault: " + parsed.fault;
}

TEST(Documents, TakeAPlainFileAsOneDocumentByteForByte) {
  const TemporaryFolder folder;
  const std::string text = "a\r\nb\n\n\xFF\0z \xEF\xBB\xBF\n";
  EXPECT_THAT(documents_of(folder.write("a.txt", text)), ElementsAre(text));
}

TEST(Documents, TakeALineOfJsonLinesEach) {
  const TemporaryFolder folder;
  for (const char* name : {"a.jsonl", "a.ndjson"}) {
    const std::string path =
        folder.write(name,
                     "\xEF\xBB\xBF{\"text\": \"one\"}\r\n"
                     "\n  \r\n"
                     "{\"id\": [1, {\"text\": 2}], \"text\": \"two\\nlines\"}\n"
                     "{\"text\": \"\"}\n"
                     "{\"text\":\"last\"}");
    EXPECT_THAT(documents_of(path), ElementsAre("one", "two\nlines", "last"));
    const DocumentCounts counts = for_each_document(path, [](std::string_view) {});
    EXPECT_EQ(counts.documents, 3);
    EXPECT_EQ(counts.empty, 1);
  }
}

TEST(Documents, NameTheLineThatIsAtFault) {
  const TemporaryFolder folder;
  const auto expect = [&](const std::string& line, const std::string& why) {
    const std::string path = folder.write("bad.jsonl", "{\"text\": \"fine\"}\n\n" + line + "\n");
    EXPECT_THAT([&] { documents_of(path); }, RefusesWith("bad.jsonl", "line 3", why));
  };
  expect("{\"content\": \"x\"}", "the field is missing");
  expect("{\"text\": 7}", "not a string");
  expect("{\"text\": \"x\"", "closing brace");
  expect("\"text\"", "object");
  expect("{\"text\": \"x\"} {}", "after the object (byte 15)");
  expect("{\"text\": \"cut of", "does not end");
}

TEST(Documents, RefuseMissingEmptyAndUnreadableFiles) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { documents_of(folder / "none.txt"); }, RefusesWith("none.txt", "No such file"));
  EXPECT_THAT([&] { documents_of(folder.write("e.txt", "")); }, RefusesWith("e.txt", "is empty"));
  EXPECT_THAT([&] { documents_of(folder.write("e.jsonl", "")); }, RefusesWith("is empty"));
  EXPECT_THAT([&] { documents_of(folder.write("n.jsonl", "\n{\"text\": \"\"}\n")); },
              RefusesWith("no document with text"));
  EXPECT_THAT([&] { documents_of("/dev/null"); }, RefusesWith("not a regular file"));
  const std::string locked = folder.write("locked.txt", "x");
  ::chmod(locked.c_str(), 0);
  if (::access(locked.c_str(), R_OK) != 0) {  // root may read everything
    EXPECT_THAT([&] { documents_of(locked); }, RefusesWith("Permission denied", "right to read"));
  }
}

TEST(Documents, RefuseAFolderAndListWhatIsInIt) {
  const TemporaryFolder folder;
  EXPECT_THAT([&] { documents_of(folder.path()); }, RefusesWith("is a folder", "empty"));
  for (const char* name : {"a.txt", "b.txt", "c.txt", "d.txt", "e.txt"}) folder.write(name, "x");
  EXPECT_THAT([&] { documents_of(folder.path()); },
              RefusesWith("is a folder", "a.txt, b.txt, c.txt, d.txt and 1 more"));
}

TEST(Documents, RefuseFilesThatAreEvidentlyNoText) {
  const TemporaryFolder folder;
  const auto expect = [&](const std::string& name, const std::string& content,
                          const std::string& why) {
    const std::string path = folder.write(name, content);
    EXPECT_THAT([&] { documents_of(path); }, RefusesWith(name, why));
  };
  expect("a.txt.gz", "\x1F\x8B\x08 rest", "gzip");
  expect("a.zst", "\x28\xB5\x2F\xFD rest", "zstd");
  expect("a.parquet", "PAR1 rest", "Parquet");
  expect("a.json", "[{\"text\": \"x\"}]", "JSON Lines");
  expect("a.bin", "headerless", "--format text");
  expect("a.txt", "\x88\xD8\x34\x01 rest", "token file");
}

TEST(JsonText, ReadsEscapes) {
  EXPECT_EQ(text_of(R"({"text": "\"\\\/\b\f\n\r\t\u0041\u00e9\u20AC"})"), "\"\\/\b\f\n\r\tAé€");
  EXPECT_EQ(text_of(R"({"t\u0065xt": "escaped key"})"), "escaped key");
}

TEST(JsonText, MakesLoneSurrogatesReplacementCharacters) {
  EXPECT_EQ(text_of(R"({"text": "x\ud83dy"})"), "x\uFFFDy");
  EXPECT_EQ(text_of(R"({"text": "x\udc4dy"})"), "x\uFFFDy");
  EXPECT_EQ(text_of(R"({"text": "\ud83d\ud83d\udc4d"})"), "\uFFFD👍");
  EXPECT_EQ(text_of(R"({"text": "\ud83d\u0041"})"),
            "\uFFFD"
            "A");
  EXPECT_EQ(text_of(R"({"text": "\ud83d\n"})"), "\uFFFD\n");
  EXPECT_EQ(text_of(R"({"text": "\ud83d"})"), "\uFFFD");
  EXPECT_EQ(text_of(R"({"text": "\ud83d\udc4d"})"), "👍");
}

TEST(JsonText, KeepsBytesThatAreNoUtf8) {
  EXPECT_EQ(text_of("{\"text\": \"x\xFFy\xF0\x9F\x91\"}"), "x\xFFy\xF0\x9F\x91");
}

TEST(JsonText, WalksNestedValuesOfAnyDepth) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_EQ(text_of("{\"a\": " + deep + ", \"text\": \"x\"}"), "x");
  EXPECT_EQ(text_of("{\"a\": " + std::string(1'000'000, '[')), "fault: a value is expected");
}

TEST(JsonText, AgreesWithAGeneralJsonReader) {
  // Strings of JSON's own words, sound and unsound; the other reader decides which is which.
  static constexpr const char* kWords[] = {"{",        "}",          "[",
                                           "]",        ",",          ":",
                                           "\"text\"", "\"a\"",      "\"\\u00e9\\n\"",
                                           "\"\\x\"",  "\"",         "true",
                                           "false",    "null",       "nul",
                                           "0",        "-1",         "1.5e-3",
                                           "01",       "1.",         "-",
                                           ".5",       "\"é👍\"",    " ",
                                           "\t",       "1e-",        "\"\\u12\"",
                                           "\"\t\"",   "{\"text\":", "\"text\":\"x\"",
                                           "[1,2]",    "{}",         "[]",
                                           ",\"a\":"};
  std::mt19937 random(10);
  int sound = 0;
  for (int round = 0; round < 200'000; ++round) {
    std::string line = "{\"text\":\"v\",\"a\":";
    for (uint32_t words = 1 + random() % 6; words > 0; --words) {
      line += kWords[random() % std::size(kWords)];
    }
    if (random() % 2 == 0) line += "}";
    const auto json = nlohmann::json::parse(line, nullptr, false);
    const JsonText ours = json_text(line, "text");
    const bool readable = !json.is_discarded() && json["text"].is_string();
    ASSERT_EQ(ours.text.has_value(), readable) << line << " " << ours.fault;
    if (!readable) continue;
    ++sound;
    ASSERT_EQ(*ours.text, json["text"].get<std::string>()) << line;
  }
  EXPECT_GT(sound, 1000);
}

}  // namespace
}  // namespace tessera::data
