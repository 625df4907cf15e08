#include "trace/chrome_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "core/error.h"

// The file ends in a tail that closes its JSON. New events are written over the tail, and a new
// tail after them, by one call: between two calls the file is whole.

namespace tessera::trace {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kTail = "\n]}\n";

fs::path file_of(const std::string& folder, int rank) {
  return fs::path(folder) / ("rank-" + std::to_string(rank) + ".json");
}

/// Moves the trace of an earlier start out of the way.
void keep_earlier(const fs::path& path) {
  if (!fs::exists(path)) return;
  fs::path kept;
  int start = 1;
  do {
    kept =
        path.parent_path() / (path.stem().string() + ".start-" + std::to_string(start++) + ".json");
  } while (fs::exists(kept));
  fs::rename(path, kept);
}

void append_text(std::string& out, std::string_view text) {
  constexpr char digits[] = "0123456789abcdef";
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (byte < 0x20) {
      ((out += "\\u00") += digits[byte >> 4]) += digits[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

/// Nanoseconds as microseconds, exact.
void append_us(std::string& out, int64_t ns) {
  if (ns < 0) out += '-';
  const uint64_t size = ns < 0 ? 0 - static_cast<uint64_t>(ns) : static_cast<uint64_t>(ns);
  out += std::to_string(size / 1000);
  const std::string fraction = std::to_string(1000 + size % 1000);
  out += '.';
  out.append(fraction, 1, 3);
}

const char* category_of(Lane lane) {
  if (lane == Lane::compute) return "compute";
  return lane == Lane::host ? "host" : "comm";
}

/// The members of "args": those that are told.
class Args {
 public:
  explicit Args(std::string& out) : out_(out) { out_ += ",\"args\":{"; }
  ~Args() { out_ += '}'; }
  Args(const Args&) = delete;
  Args& operator=(const Args&) = delete;

  void add(std::string_view key, int64_t value) {
    if (value < 0) return;
    begin(key);
    out_ += std::to_string(value);
  }
  void add(std::string_view key, std::string_view value) {
    if (value.empty()) return;
    begin(key);
    append_text(out_, value);
  }

 private:
  void begin(std::string_view key) {
    if (!std::exchange(first_, false)) out_ += ',';
    append_text(out_, key);
    out_ += ':';
  }
  std::string& out_;
  bool first_ = true;
};

}  // namespace

ChromeWriter::ChromeWriter(const std::string& folder, int rank, int world_size,
                           const Origin& origin)
    : path_(file_of(folder, rank).string()), rank_(rank), origin_ns_(on_this_host(origin)) {
  try {
    fs::create_directories(folder);
    keep_earlier(path_);
    // Those of ranks that this start does not have any more, by one who is there.
    for (int gone = world_size; rank == 0 && fs::exists(file_of(folder, gone)); ++gone) {
      keep_earlier(file_of(folder, gone));
    }
  } catch (const fs::filesystem_error& error) {
    throw core::RunError(core::file_failure("write", path_, error.code().value()));
  }
  file_ = core::Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file_) throw core::RunError(core::file_failure("make", path_, errno));
  const std::string number = std::to_string(rank);
  buffer_ = "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"rank\":" + number +
            ",\"world_size\":" + std::to_string(world_size) +
            ",\"origin_unix_ns\":" + std::to_string(origin.unix_ns) + "},\"traceEvents\":[\n";
  add_process(rank, "rank " + number);
  flush();
}

void ChromeWriter::write(std::vector<Span> spans) {
  // What holds another span stands before it, also where both begin at once.
  std::stable_sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
  });
  for (const Span& span : spans) add_event(span);
  if (!spans.empty()) flush();
}

void ChromeWriter::begin_event(int64_t pid, int tid) {
  if (!std::exchange(empty_, false)) buffer_ += ",\n";
  ((buffer_ += "{\"pid\":") += std::to_string(pid)) += ",\"tid\":";
  buffer_ += std::to_string(tid);
}

void ChromeWriter::add_process(int64_t pid, const std::string& name) {
  add_metadata(pid, "process_name", 0, "name", name);
  add_metadata(pid, "process_sort_index", 0, "sort_index", std::to_string(pid));
}

void ChromeWriter::add_metadata(int64_t pid, std::string_view what, int tid, std::string_view key,
                                std::string_view value) {
  begin_event(pid, tid);
  (buffer_ += ",\"ph\":\"M\",\"name\":\"") += what;
  ((buffer_ += "\",\"args\":{\"") += key) += "\":";
  if (key == "name") {
    append_text(buffer_, value);
  } else {
    buffer_ += value;
  }
  buffer_ += "}}";
}

int ChromeWriter::row_of(const Span& span) {
  const int64_t pid = pid_of(span);
  if (span.predicted && !std::exchange(has_predicted_, true)) {
    add_process(pid, "rank " + std::to_string(rank_) + ", predicted");
  }
  const int lane = static_cast<int>(span.lane);
  std::vector<int64_t>& ends =
      row_ends_[static_cast<size_t>(lane + (span.predicted ? kNumLanes : 0))];
  const bool nests = !span.predicted && (span.lane == Lane::compute || span.lane == Lane::host);
  size_t row = 0;
  while (!nests && row < ends.size() && ends[row] > span.begin_ns) ++row;
  const int tid = lane + 10 * static_cast<int>(row);
  if (nests ? ends.empty() : row == ends.size()) {
    ends.push_back(0);
    std::string name = name_of(span.lane);
    if (row > 0) name += ' ' + std::to_string(row + 1);
    add_metadata(pid, "thread_name", tid, "name", name);
    add_metadata(pid, "thread_sort_index", tid, "sort_index",
                 std::to_string(10 * lane + static_cast<int>(row)));
  }
  ends[row] = std::max(ends[row], span.end_ns);
  return tid;
}

void ChromeWriter::add_event(const Span& span) {
  const int tid = row_of(span);
  begin_event(pid_of(span), tid);
  ((buffer_ += ",\"ph\":\"X\",\"cat\":\"") += category_of(span.lane)) += "\",\"name\":";
  append_text(buffer_, span.name);
  buffer_ += ",\"ts\":";
  append_us(buffer_, span.begin_ns - origin_ns_);
  buffer_ += ",\"dur\":";
  append_us(buffer_, span.end_ns - span.begin_ns);
  {
    const Details& details = span.details;
    Args args(buffer_);
    args.add("step", details.step);
    args.add("stage", details.stage);
    args.add("chunk", details.chunk);
    args.add("micro_batch", details.micro_batch);
    args.add("unit", details.unit);
    args.add("axis", details.axis);
    args.add("collective", details.collective);
    args.add("bytes", details.bytes);
    args.add("sequence", details.sequence);
  }
  buffer_ += '}';
  if (span.flow_in >= 0) add_flow(span, tid, /*begins=*/false);
  if (span.flow_out >= 0) add_flow(span, tid, /*begins=*/true);
}

void ChromeWriter::add_flow(const Span& span, int tid, bool begins) {
  // Viewers tie an arrow to the span of its row that is open then, and the end is outside.
  const int64_t ns = begins ? std::max(span.begin_ns, span.end_ns - 1) : span.begin_ns;
  begin_event(pid_of(span), tid);
  buffer_ += begins ? ",\"ph\":\"s\"" : ",\"ph\":\"f\",\"bp\":\"e\"";
  buffer_ += ",\"cat\":\"comm\",\"name\":\"stream\",\"id\":";
  buffer_ += std::to_string(begins ? span.flow_out : span.flow_in);
  buffer_ += ",\"ts\":";
  append_us(buffer_, ns - origin_ns_);
  buffer_ += '}';
}

void ChromeWriter::flush() {
  const auto events = static_cast<int64_t>(buffer_.size());
  buffer_ += kTail;
  if (::lseek(file_.get(), end_, SEEK_SET) < 0) {
    throw core::RunError(core::file_failure("write", path_, errno));
  }
  core::write_all(file_, std::as_bytes(std::span(buffer_)), path_);
  end_ += events;
  buffer_.clear();
}

}  // namespace tessera::trace
