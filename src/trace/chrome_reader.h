#pragma once

// Reads traces: our own and those of other programs, in Chrome's object form and its array form.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/recorder.h"

namespace tessera::trace {

/// A span of a file, on the row that the file says. Details that it does not tell are not told here
/// either.
struct ChromeEvent {
  std::string name;
  std::string category;
  int64_t pid = 0;
  int64_t tid = 0;
  int64_t begin_ns = 0;  ///< since the file's time 0
  int64_t end_ns = 0;
  Details details;
};

/// An end of an arrow ("s", "f"), tied to the span of its row that is open at that time. The two
/// ends have name, category and id in common, and may lie in two files.
struct ChromeFlow {
  std::string name;
  std::string category;
  std::string id;  ///< a number as its digits
  int64_t pid = 0;
  int64_t tid = 0;
  int64_t time_ns = 0;  ///< since the file's time 0
  bool begins = false;
};

struct ChromeTrace {
  std::vector<ChromeEvent> events;                             ///< in the file's order
  std::vector<ChromeFlow> flows;                               ///< in the file's order
  std::map<int64_t, std::string> processes;                    ///< pid → name
  std::map<std::pair<int64_t, int64_t>, std::string> threads;  ///< pid, tid → name
  /// The file ends in the middle: its writer was killed. What came before is here.
  bool torn = false;
};

/// The spans of a trace, complete events ("X") and pairs ("B", "E") that are closed, and its flows;
/// other kinds are passed over. A pid or tid that is a text gets a number that no other has.
/// `where` begins the message of the ConfigError that is thrown where the text is no trace.
ChromeTrace parse_chrome_trace(std::string_view text, const std::string& where);

/// The same of a file; throws ConfigError where it cannot be read, too.
ChromeTrace read_chrome_trace(const std::string& path);

}  // namespace tessera::trace
