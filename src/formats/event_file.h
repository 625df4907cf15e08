#pragma once

// TensorBoard's event files, written by hand: TFRecord frames (length, its masked CRC-32C, bytes,
// theirs) round `Event` protocol buffers. Of the message no more is written than a scalar needs:
//   Event   { double wall_time = 1; int64 step = 2; string file_version = 3; Summary summary = 5;
//             SessionLog session_log = 7; }
//   Summary { repeated Value value = 1; }    Value { string tag = 1; float simple_value = 2; }
//   SessionLog { SessionStatus status = 1 (START = 1); }

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/file.h"

namespace tessera::formats {

/// One value of one step: "grad_norm", 1.25.
struct Scalar {
  std::string_view tag;
  double value = 0;  ///< stored as a float
};

/// `payload` as one TFRecord.
std::string tf_record(std::string_view payload);

/// The three kinds of Event that a run writes, encoded. Times are seconds since the epoch.
std::string version_event(double wall_time);
std::string session_start_event(double wall_time, int64_t step);
std::string scalars_event(double wall_time, int64_t step, const std::vector<Scalar>& scalars);

/// The name of the next event file beside files named `existing`:
/// events.out.tfevents.<seconds>.<host>.<pid>.<n>, of ten digits. TensorBoard reads the files of a
/// folder in the order of their names, and takes a file as finished when a later one is there. So
/// the seconds are `now`, or one more than the latest of `existing` where that is later: two starts
/// within a second, a clock set back and another host make no difference. n is how many there were.
std::string next_event_file_name(const std::vector<std::string>& existing, int64_t now,
                                 const std::string& host, int64_t pid);

/// A new event file of a run, one a start or resume: what an interrupted run left torn or zeroed at
/// the end of its file is never written after, which TensorBoard could not read past.
class EventFile {
 public:
  /// Makes `folder` where it is missing, and in it a file that says where this part of the run
  /// begins. By that TensorBoard drops what earlier files tell of `first_step` and later: a run
  /// that went back to a checkpoint shows each step once. Throws RunError.
  EventFile(const std::filesystem::path& folder, int64_t first_step);

  /// Appends one event, in one write, so that TensorBoard sees it while the run goes on. Throws
  /// RunError when the disk is full or fails.
  void write(double wall_time, int64_t step, const std::vector<Scalar>& scalars);

  const std::string& path() const { return path_; }

 private:
  void append(const std::string& bytes);

  std::string path_;
  core::Descriptor file_;
};

}  // namespace tessera::formats
