#include "formats/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/error.h"

namespace tessera::formats {
namespace {

using core::ConstView;
using core::DType;
using testing::HasSubstr;

class Safetensors : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ =
        std::filesystem::path(testing::TempDir()) / (std::string("safetensors_") + test->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / "x.safetensors").string();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write_raw(const std::string& bytes) const {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  /// Writes a header with the length it has, then data.
  void write(const std::string& header, const std::string& data) const {
    std::string bytes(8, '\0');
    for (size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(uint64_t{header.size()} >> (8 * i));
    write_raw(bytes + header + data);
  }
  /// The message with which the file is refused.
  std::string refusal() const {
    try {
      const SafetensorsFile file(path_);
    } catch (const core::RunError& error) {
      EXPECT_THAT(error.what(), HasSubstr(path_));
      return error.what();
    }
    return "accepted";
  }

  std::filesystem::path folder_;
  std::string path_;
};

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   int64_t begin, int64_t end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
}

TEST_F(Safetensors, ComeBackAsTheyWereInEveryDtype) {
  const std::vector<uint8_t> u8 = {1, 2, 3};
  const std::vector<double> f64 = {1.5, -2.5};
  const std::vector<uint16_t> u16 = {65535};
  const std::vector<float> f32 = {0.25f, -1, 7, 8, 9, 10};
  const std::vector<core::bf16> bf16 = {core::bf16(3.0f), core::bf16(-4.0f)};
  const std::vector<int64_t> i64 = {-5};
  const std::vector<int32_t> i32 = {7, -7};
  const std::vector<NamedTensor> tensors = {
      {"u8", {u8.data(), DType::u8, {3}}},       {"f64", {f64.data(), DType::f64, {2, 1}}},
      {"u16", {u16.data(), DType::u16, {1}}},    {"f32", {f32.data(), DType::f32, {1, 2, 3}}},
      {"bf16", {bf16.data(), DType::bf16, {2}}}, {"i64", {i64.data(), DType::i64, {}}},
      {"i32", {i32.data(), DType::i32, {2}}},    {"none", {nullptr, DType::f32, {0, 4}}},
  };
  write_safetensors(path_, tensors, {{"step", "12"}});
  const SafetensorsFile file(path_);
  EXPECT_EQ(file.metadata(), (Metadata{{"format", "pt"}, {"step", "12"}}));
  EXPECT_EQ(file.entries().size(), tensors.size());
  for (const NamedTensor& expected : tensors) {
    const SafetensorsEntry* entry = file.find(expected.name);
    ASSERT_NE(entry, nullptr) << expected.name;
    EXPECT_EQ(entry->dtype, expected.data.dtype);
    EXPECT_EQ(entry->shape, expected.data.shape);
    ASSERT_EQ(entry->bytes, expected.data.bytes());
    if (entry->bytes > 0) {
      EXPECT_EQ(
          std::memcmp(file.data(*entry), expected.data.data, static_cast<size_t>(entry->bytes)), 0)
          << expected.name;
    }
    const auto address = reinterpret_cast<uintptr_t>(file.data(*entry));
    EXPECT_EQ(address % static_cast<uintptr_t>(core::size_of(entry->dtype)), 0u) << expected.name;
  }
}

TEST_F(Safetensors, AreDigestedAsTheyLieOnTheDisk) {
  const std::vector<float> values(300'000, 0.5f);
  const FileDigest digest = write_safetensors(
      path_, {{"a", {values.data(), DType::f32, {static_cast<int64_t>(values.size())}}}});
  EXPECT_EQ(digest, digest_of_file(path_));
  EXPECT_EQ(digest.bytes, static_cast<int64_t>(std::filesystem::file_size(path_)));
}

TEST_F(Safetensors, StartTheDataAtAMultipleOfEight) {
  const float value = 1;
  for (const char* name : {"a", "ab", "abc", "abcd", "abcde", "abcdef", "abcdefg", "abcdefgh"}) {
    write_safetensors(path_, {{name, {&value, DType::f32, {1}}}});
    std::ifstream file(path_, std::ios::binary);
    uint64_t length = 0;
    file.read(reinterpret_cast<char*>(&length), 8);
    EXPECT_EQ(length % 8, 0u);
  }
}

TEST_F(Safetensors, CannotBeWrittenWhereThereIsNoFolderOrNoRoom) {
  EXPECT_THROW(write_safetensors((folder_ / "none" / "x").string(), {}), core::RunError);
  if (std::filesystem::exists("/dev/full")) {
    const std::vector<float> values(1000);
    try {
      write_safetensors("/dev/full", {{"a", {values.data(), DType::f32, {1000}}}});
      FAIL() << "nothing was thrown";
    } catch (const core::RunError& error) {
      EXPECT_THAT(error.what(), HasSubstr("No space left"));
    }
  }
}

TEST_F(Safetensors, MayHoldTensorsWithoutElementsAndScalars) {
  write("{" + tensor("a", "F32", "[0]", 0, 0) + "," + tensor("b", "F32", "[1]", 0, 4) + "}",
        "abcd");
  EXPECT_EQ(SafetensorsFile(path_).find("a")->shape, (core::Shape{0}));
  write("{" + tensor("b", "F32", "[]", 4, 8) + "," + tensor("a", "F32", "[1]", 0, 4) + "," +
            tensor("none", "F32", "[4,0]", 4, 4) + "}",
        "abcdefgh");
  EXPECT_EQ(SafetensorsFile(path_).find("b")->shape.elements(), 1);
  write("{}", "");
  EXPECT_TRUE(SafetensorsFile(path_).entries().empty());
}

TEST_F(Safetensors, MayListTensorsInAnyOrderAndPadTheirHeader) {
  write("{" + tensor("b", "U8", "[1]", 1, 2) + ",\"__metadata__\":{\"x\":\"y\"}," +
            tensor("a", "U8", "[1]", 0, 1) + "}   ",
        "ab");
  const SafetensorsFile file(path_);
  EXPECT_EQ(file.entries()[0].name, "a");
  EXPECT_EQ(*static_cast<const char*>(file.data(*file.find("b"))), 'b');
}

TEST_F(Safetensors, AreRefusedWithANameTwice) {
  write("{" + tensor("w", "U8", "[1]", 0, 1) + "," + tensor("w", "U8", "[1]", 1, 2) + "}", "ab");
  EXPECT_THAT(refusal(), HasSubstr("\"w\" stands there twice"));
  write("{\"w\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", "a");
  EXPECT_THAT(refusal(), HasSubstr("\"dtype\" stands there twice"));
}

TEST_F(Safetensors, AreRefusedWithBytesSharedByTensorsOrOwnedByNone) {
  write("{" + tensor("k", "U8", "[4]", 0, 4) + "," + tensor("v", "U8", "[4]", 0, 4) + "}", "abcd");
  EXPECT_THAT(refusal(), HasSubstr("inside the tensor before it"));
  write("{" + tensor("a", "U8", "[4]", 4, 8) + "}", "abcdefgh");
  EXPECT_THAT(refusal(), HasSubstr("belong to no tensor"));
  write("{" + tensor("a", "U8", "[4]", 0, 4) + "}", "abcde");
  EXPECT_THAT(refusal(), HasSubstr("1 bytes follow"));
  write("{" + tensor("a", "U8", "[4]", 0, 4) + "}", "abc");
  EXPECT_THAT(refusal(), HasSubstr("cut"));
}

TEST_F(Safetensors, AreRefusedWhenAShapeDoesNotFitItsBytes) {
  write("{" + tensor("a", "F32", "[1]", 0, 0) + "}", "");
  EXPECT_THAT(refusal(), HasSubstr("needs 4 bytes"));
  write("{" + tensor("a", "F32", "[2]", 0, 4) + "}", "abcd");
  EXPECT_THAT(refusal(), HasSubstr("needs 8 bytes"));
  write("{" + tensor("a", "F32", "[4611686018427387904,4]", 0, 0) + "}", "");
  EXPECT_THAT(refusal(), HasSubstr("overflows"));
  write("{" + tensor("a", "U8", "[1]", 1, 0) + "}", "");
  EXPECT_THAT(refusal(), HasSubstr("data_offsets"));
}

TEST_F(Safetensors, AreRefusedWithNumbersThatAreNoSizes) {
  for (const char* shape :
       {"[-1]", "[1.0]", "[\"1\"]", "[18446744073709551615]", "[1e3]", "3", "[true]", "[null]"}) {
    write("{" + tensor("a", "U8", shape, 0, 1) + "}", "a");
    EXPECT_THAT(refusal(), HasSubstr("the shape of \"a\"")) << shape;
  }
  write("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,18446744073709551615]}}", "a");
  EXPECT_THAT(refusal(), HasSubstr("data_offsets"));
}

TEST_F(Safetensors, AreRefusedByTheirHeadersLengthBeforeAnythingIsReserved) {
  write_raw(std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8) + "12345678");
  EXPECT_THAT(refusal(), HasSubstr("9223372036854775807 bytes"));
  write_raw(std::string("\x40\x9d\xdf\x07\0\0\0\0", 8) + "{}");
  EXPECT_THAT(refusal(), HasSubstr("132095296"));
  write_raw(std::string("\x10\0\0\0\0\0\0\0", 8) + "{}");
  EXPECT_THAT(refusal(), HasSubstr("inside its header"));
}

TEST_F(Safetensors, AreRefusedWhenShorterThanTheirLength) {
  for (size_t bytes = 0; bytes < 8; ++bytes) {
    write_raw(std::string(bytes, '\0'));
    EXPECT_THAT(refusal(), HasSubstr("too short"));
  }
}

TEST_F(Safetensors, AreRefusedWithAHeaderThatIsNoneOfTheFormats) {
  for (const char* header :
       {"", "[]", "null", " {}", "{", "{} {}", "\xef\xbb\xbf{}", "{\"a\":1}", "{\"a\":{}}",
        "{\"__metadata__\":1}", "{\"__metadata__\":{\"a\":1}}", "{\"a\":[[[[[[[[1]]]]]]]]}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],\"x\":1}}",
        "{\"a\":{\"dtype\":5,\"shape\":[0],\"data_offsets\":[0,0]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1],\"data_offsets\":[0,1]}}"}) {
    write(header, "");
    EXPECT_THAT(refusal(), HasSubstr("not a valid safetensors file")) << header;
  }
  write("{" + tensor("a", "F12", "[1]", 0, 2) + "}", "ab");
  EXPECT_THAT(refusal(), HasSubstr("F12"));
}

TEST_F(Safetensors, AreRefusedWhenDeeplyNestedWithoutRunningOutOfStack) {
  write("{\"a\":" + std::string(5'000'000, '['), "");
  EXPECT_THAT(refusal(), HasSubstr("nested"));
}

TEST_F(Safetensors, AreRefusedWhenTheyAreAFolderOrMissing) {
  path_ = folder_.string();
  EXPECT_THAT(refusal(), HasSubstr("not a regular file"));
  path_ = (folder_ / "none").string();
  EXPECT_THAT(refusal(), HasSubstr("No such file"));
}

}  // namespace
}  // namespace tessera::formats
