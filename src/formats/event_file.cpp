#include "formats/event_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <span>

#include "formats/crc32c.h"

namespace tessera::formats {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "events.out.tfevents.";
constexpr size_t kSecondsDigits = 10;

// Protocol buffers: a field is a varint of its number and wire type, then its value.
enum WireType : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

template <class T>
void put_little_endian(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>((value >> (8 * i)) & 0xff);
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  out += static_cast<char>(value);
}

void put_tag(std::string& out, uint32_t field, WireType type) {
  put_varint(out, field << 3 | type);
}

void put_integer(std::string& out, uint32_t field, int64_t value) {
  put_tag(out, field, kVarint);
  put_varint(out, static_cast<uint64_t>(value));
}

void put_double(std::string& out, uint32_t field, double value) {
  put_tag(out, field, kFixed64);
  put_little_endian(out, std::bit_cast<uint64_t>(value));
}

void put_float(std::string& out, uint32_t field, float value) {
  put_tag(out, field, kFixed32);
  put_little_endian(out, std::bit_cast<uint32_t>(value));
}

void put_bytes(std::string& out, uint32_t field, std::string_view value) {
  put_tag(out, field, kBytes);
  put_varint(out, value.size());
  out += value;
}

std::string event_at(double wall_time, int64_t step) {
  std::string event;
  put_double(event, 1, wall_time);
  if (step != 0) put_integer(event, 2, step);
  return event;
}

/// The seconds in an event file's name; -1 when it is none of the form.
int64_t seconds_of(const std::string& name) {
  if (!name.starts_with(kPrefix)) return -1;
  const char* begin = name.data() + kPrefix.size();
  const char* end = name.data() + name.size();
  int64_t seconds = 0;
  const auto result = std::from_chars(begin, end, seconds);
  const bool whole = result.ec == std::errc() && result.ptr - begin == kSecondsDigits &&
                     result.ptr != end && *result.ptr == '.';
  return whole ? seconds : -1;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "localhost";
  std::string host = name.data();
  std::replace(host.begin(), host.end(), '/', '_');
  return host;
}

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

std::string tf_record(std::string_view payload) {
  std::string length;
  put_little_endian<uint64_t>(length, payload.size());
  std::string record = length;
  put_little_endian(record, masked_crc32c(length));
  record += payload;
  put_little_endian(record, masked_crc32c(payload));
  return record;
}

std::string version_event(double wall_time) {
  std::string event = event_at(wall_time, 0);
  put_bytes(event, 3, "brain.Event:2");
  return event;
}

std::string session_start_event(double wall_time, int64_t step) {
  constexpr int64_t kStart = 1;
  std::string log;
  put_integer(log, 1, kStart);
  std::string event = event_at(wall_time, step);
  put_bytes(event, 7, log);
  return event;
}

std::string scalars_event(double wall_time, int64_t step, const std::vector<Scalar>& scalars) {
  std::string summary;
  for (const Scalar& scalar : scalars) {
    std::string value;
    put_bytes(value, 1, scalar.tag);
    put_float(value, 2, static_cast<float>(scalar.value));
    put_bytes(summary, 1, value);
  }
  std::string event = event_at(wall_time, step);
  put_bytes(event, 5, summary);
  return event;
}

std::string next_event_file_name(const std::vector<std::string>& existing, int64_t now,
                                 const std::string& host, int64_t pid) {
  int64_t seconds = now;
  int64_t count = 0;
  for (const std::string& name : existing) {
    const int64_t other = seconds_of(name);
    if (other < 0) continue;
    seconds = std::max(seconds, other + 1);
    ++count;
  }
  return fmt::format("{}{:0{}}.{}.{}.{}", kPrefix, seconds, kSecondsDigits, host, pid, count);
}

EventFile::EventFile(const fs::path& folder, int64_t first_step) {
  const double now = now_seconds();
  try {
    fs::create_directories(folder);
    path_ = (folder / next_event_file_name(names_in(folder), static_cast<int64_t>(now), host_name(),
                                           getpid()))
                .string();
  } catch (const fs::filesystem_error& error) {
    throw core::RunError(core::file_failure("use", folder.string(), error.code().value()));
  }
  file_ = core::Descriptor(
      ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666));
  if (!file_) throw core::RunError(core::file_failure("create", path_, errno));
  append(tf_record(version_event(now)) + tf_record(session_start_event(now, first_step)));
}

void EventFile::write(double wall_time, int64_t step, const std::vector<Scalar>& scalars) {
  append(tf_record(scalars_event(wall_time, step, scalars)));
}

void EventFile::append(const std::string& bytes) {
  try {
    core::write_all(file_, std::as_bytes(std::span(bytes)), path_);
  } catch (const core::RunError& error) {
    throw core::RunError(std::string(error.what()) + "; free some space and resume");
  }
}

}  // namespace tessera::formats
