#include "core/file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace tessera::core {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

class File : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "tessera-core-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/a";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  size_t num_files() const {
    size_t count = 0;
    for (std::filesystem::directory_iterator it(folder_), end; it != end; ++it) ++count;
    return count;
  }

  std::string folder_, path_;
};

/// The errno of the FileError that `action` throws; 0 when it throws none.
template <class Action>
int error_of(const Action& action) {
  try {
    action();
  } catch (const FileError& failure) {
    return failure.error;
  }
  return 0;
}

TEST_F(File, IsReadBackAsItWasWritten) {
  const std::string content("one\0two\n", 8);
  write_atomically(path_, content);
  EXPECT_EQ(read_file(path_), content);
  EXPECT_EQ(MappedFile(path_).bytes(), content);
  write_atomically(path_, "");
  EXPECT_EQ(read_file(path_), "");
  EXPECT_TRUE(MappedFile(path_).bytes().empty());
  EXPECT_EQ(num_files(), 1u);
}

TEST_F(File, IsReadWhollyWhenItsSizeIsNotTold) {
  if (!std::filesystem::exists("/proc/self/status")) GTEST_SKIP() << "no /proc";
  const std::string status = read_file("/proc/self/status");
  EXPECT_THAT(status, HasSubstr("Name:"));
  EXPECT_EQ(status.back(), '\n');
}

TEST_F(File, IsNotReadWhenItIsAFolderOrMissing) {
  EXPECT_EQ(error_of([&] { read_file(folder_); }), EISDIR);
  EXPECT_EQ(error_of([&] { MappedFile file(folder_); }), EISDIR);
  EXPECT_EQ(error_of([&] { read_file(path_); }), ENOENT);
  EXPECT_EQ(error_of([&] { MappedFile file("/dev/null"); }), ESPIPE);
  EXPECT_THAT([&] { read_file(path_); }, ThrowsMessage<RunError>(HasSubstr("No such file")));
  EXPECT_THAT([&] { read_file(folder_); }, ThrowsMessage<RunError>(HasSubstr(folder_)));
}

TEST_F(File, IsNotWrittenOverAFolderOrIntoNone) {
  EXPECT_EQ(error_of([&] { write_atomically(folder_, "x"); }), EISDIR);
  EXPECT_EQ(error_of([&] { write_atomically(folder_ + "/none/a", "x"); }), ENOENT);
}

TEST_F(File, IsUnchangedUntilTheNewOneIsComplete) {
  write_atomically(path_, "old");
  {
    AtomicFile file(path_);
    AtomicFile other(path_);  // their temporary names differ
    file.write(std::as_bytes(std::span("abandoned")));
    EXPECT_EQ(read_file(path_), "old");
    EXPECT_EQ(num_files(), 3u);
  }
  EXPECT_EQ(read_file(path_), "old");
  EXPECT_EQ(num_files(), 1u);
}

TEST_F(File, TellsWhyNotAllOfItCouldBeWritten) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  const Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_THAT([&] { write_all(full, std::as_bytes(std::span("x")), "/dev/full"); },
              ThrowsMessage<RunError>(HasSubstr("No space left")));
}

TEST(WriteAtomically, WritesToADeviceAndLeavesItOne) {
  const std::string device = testing::TempDir() + "device-" + std::to_string(::getpid());
  ASSERT_EQ(::mkfifo(device.c_str(), 0600), 0);
  const Descriptor reader(::open(device.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  write_atomically(device, "words");
  EXPECT_TRUE(std::filesystem::is_fifo(device));
  char read[8] = {};
  EXPECT_EQ(::read(reader.get(), read, sizeof read), 5);
  EXPECT_STREQ(read, "words");
  std::filesystem::remove(device);
}

TEST_F(File, ClosesWhatItsDescriptorOwns) {
  write_atomically(path_, "x");
  Descriptor first(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  const int number = first.get();
  Descriptor second = std::move(first);
  EXPECT_EQ(second.get(), number);
  second = Descriptor();
  EXPECT_FALSE(second);
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
}

TEST_F(File, IsFlushedToTheDiskOrSaysWhyNot) {
  write_atomically(path_, "x");
  EXPECT_NO_THROW(sync_to_disk(path_));
  EXPECT_NO_THROW(sync_to_disk(folder_));
  EXPECT_THAT([&] { sync_to_disk(folder_ + "/none"); },
              ThrowsMessage<RunError>(HasSubstr("No such file")));
}

}  // namespace
}  // namespace tessera::core
