#include "formats/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "core/error.h"
#include "core/file.h"
#include "formats/crc32c.h"

namespace tessera::formats {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

// A reader of event files that shares nothing with the writer: the checksum by long division a bit
// at a time, messages by walking whatever fields there are.

uint32_t checksum_by_division(const std::string& bytes) {
  uint32_t remainder = 0xffffffff;
  for (const char c : bytes) {
    for (int bit = 0; bit < 8; ++bit) {
      const bool in = ((static_cast<unsigned char>(c) >> bit) & 1) != 0;
      const bool out = (remainder & 1) != 0;
      remainder >>= 1;
      if (in != out) remainder ^= 0x82f63b78;
    }
  }
  const uint32_t crc = remainder ^ 0xffffffff;
  return (crc << 17 | crc >> 15) + 0xa282ead8;
}

template <class T>
T load(const std::string& bytes, size_t at) {
  T value{};
  if (at + sizeof(T) > bytes.size()) throw std::out_of_range("cut short");
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

std::vector<std::string> records(const std::string& file) {
  std::vector<std::string> found;
  for (size_t at = 0; at < file.size();) {
    const auto length = load<uint64_t>(file, at);
    EXPECT_EQ(load<uint32_t>(file, at + 8), checksum_by_division(file.substr(at, 8)));
    const std::string payload = file.substr(at + 12, length);
    EXPECT_EQ(load<uint32_t>(file, at + 12 + length), checksum_by_division(payload));
    found.push_back(payload);
    at += 16 + length;
  }
  return found;
}

uint64_t varint(const std::string& bytes, size_t& at) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.at(at++));
    value |= uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return value;
  }
}

/// Field number → raw values, in order.
std::multimap<uint64_t, std::string> fields(const std::string& message) {
  std::multimap<uint64_t, std::string> found;
  for (size_t at = 0; at < message.size();) {
    const uint64_t tag = varint(message, at);
    size_t length = 0;
    std::string value;
    switch (tag & 7) {
      case 0:
        value = std::to_string(varint(message, at));
        break;
      case 1:
        length = 8;
        break;
      case 2:
        length = varint(message, at);
        break;
      case 5:
        length = 4;
        break;
      default:
        ADD_FAILURE() << "wire type " << (tag & 7);
    }
    if ((tag & 7) != 0) value = message.substr(at, length);
    EXPECT_EQ(at + length <= message.size(), true);
    at += length;
    found.emplace(tag >> 3, value);
  }
  return found;
}

std::string only(const std::multimap<uint64_t, std::string>& message, uint64_t field) {
  EXPECT_EQ(message.count(field), 1u) << field;
  const auto found = message.find(field);
  return found == message.end() ? std::string(8, '\0') : found->second;
}

TEST(Crc32c, IsThatOfThePublishedVectors) {
  std::string rising;
  for (int i = 0; i < 32; ++i) rising += static_cast<char>(i);
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(rising), 0x46dd794eu);
  EXPECT_EQ(crc32c(std::string(rising.rbegin(), rising.rend())), 0x113fdb5cu);
}

TEST(Crc32c, OfEightZeroBytesIsMaskedToWhatViewersReportOfAZeroedTail) {
  EXPECT_EQ(masked_crc32c(std::string(8, '\0')), 0x07980329u);
}

TEST(TfRecord, FramesAnyPayloadWithItsLengthAndBothChecksums) {
  for (const size_t size : {0, 1, 7, 255, 70000}) {
    std::string payload(size, 'x');
    for (size_t i = 0; i < size; ++i) payload[i] = static_cast<char>(i * 37);
    EXPECT_THAT(records(tf_record(payload)), ElementsAre(payload)) << size;
  }
}

TEST(Event, OfScalarsHoldsTimeStepTagsAndValues) {
  const auto event = fields(scalars_event(
      1.5e9, int64_t{1} << 40, {{"grad_norm", 0.1}, {"time_metrics/end_to_end(s)", -3}}));
  EXPECT_EQ(load<double>(only(event, 1), 0), 1.5e9);
  EXPECT_EQ(only(event, 2), std::to_string(int64_t{1} << 40));
  const auto summary = fields(only(event, 5));
  std::vector<std::string> tags;
  std::vector<float> values;
  for (const auto& entry : summary) {
    EXPECT_EQ(entry.first, 1u);
    const auto value = fields(entry.second);
    tags.push_back(only(value, 1));
    values.push_back(load<float>(only(value, 2), 0));
  }
  EXPECT_THAT(tags, ElementsAre("grad_norm", "time_metrics/end_to_end(s)"));
  EXPECT_THAT(values, ElementsAre(0.1F, -3.0F));
}

TEST(EventFileName, SortsAfterThoseOfEarlierSegmentsWhateverTheClockSays) {
  std::vector<std::string> names;
  const struct {
    int64_t now;
    const char* host;
    int64_t pid;
  } starts[] = {{1700000000, "zebra", 99},
                {1700000000, "ant", 100},
                {1600000000, "ant", 2},
                {1700000100, "bee", 1}};
  for (const auto& start : starts) {
    names.push_back(next_event_file_name(names, start.now, start.host, start.pid));
    EXPECT_TRUE(std::is_sorted(names.begin(), names.end())) << names.back();
  }
  EXPECT_EQ(names.front(), "events.out.tfevents.1700000000.zebra.99.0");
  EXPECT_EQ(names.back(), "events.out.tfevents.1700000100.bee.1.3");
}

TEST(EventFileName, PassesOverFilesThatAreNoneOfOurs) {
  EXPECT_EQ(next_event_file_name(
                {"notes.txt", "events.out.tfevents.99999999999.h.1.0", "events.out.tfevents.x"},
                1700000000, "h", 5),
            "events.out.tfevents.1700000000.h.5.0");
}

class EventFileTest : public testing::Test {
 protected:
  void SetUp() override { fs::remove_all(folder_); }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_ = fs::path(testing::TempDir()) / "event_file_test" / "tensorboard";
};

TEST_F(EventFileTest, BeginsWithTheVersionAndTheStepFromWhichItCounts) {
  EventFile file(folder_, 81);
  const auto events = records(core::read_file(file.path()));
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(only(fields(events[0]), 3), "brain.Event:2");
  const auto start = fields(events[1]);
  EXPECT_EQ(only(start, 2), "81");
  EXPECT_EQ(only(fields(only(start, 7)), 1), "1");
}

TEST_F(EventFileTest, CanBeReadWhileItIsWritten) {
  EventFile file(folder_, 1);
  for (int64_t step = 1; step <= 3; ++step) {
    file.write(1e9, step, {{"lr", 0.5}});
    const auto events = records(core::read_file(file.path()));
    ASSERT_EQ(events.size(), 2u + static_cast<size_t>(step));
    EXPECT_EQ(only(fields(events.back()), 2), std::to_string(step));
  }
}

TEST_F(EventFileTest, OfALaterSegmentLeavesATornOneAsItIs) {
  const std::string torn = EventFile(folder_, 1).path();
  std::ofstream(torn, std::ios::app | std::ios::binary) << std::string(64, '\0');
  const std::string before = core::read_file(torn);
  EventFile next(folder_, 5);
  next.write(1e9, 5, {{"lr", 0.5}});
  EXPECT_LT(torn, next.path());
  EXPECT_EQ(core::read_file(torn), before);
  EXPECT_EQ(records(core::read_file(next.path())).size(), 3u);
}

TEST_F(EventFileTest, ThatCannotBeMadeIsARunErrorNamingIt) {
  fs::create_directories(folder_.parent_path());
  std::ofstream(folder_.string()) << "a file";
  try {
    const EventFile file(folder_, 1);
    FAIL() << "made";
  } catch (const core::RunError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(folder_.string()));
  }
}

}  // namespace
}  // namespace tessera::formats
