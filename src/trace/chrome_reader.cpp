#include "trace/chrome_reader.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"
#include "core/file.h"

// Traces are large and may end anywhere, so the file is walked through once, without a tree of it;
// what an event says is taken down as it comes by. Of the depth of brackets no more is known than
// where the array of events is: its events are one level down, their "args" two.

namespace tessera::trace {

namespace {

using Json = nlohmann::json;

/// A value in an event that is no bracket.
struct Scalar {
  enum class Kind { other, number, text } kind = Kind::other;
  double number = 0;
  std::string text;
};

struct Refused {
  std::string why;
};

/// An event as the file tells it.
struct RawEvent {
  std::string name, category, phase;
  Scalar pid, tid, id;
  std::optional<double> ts, dur;
  std::map<std::string, Scalar> args;
};

/// Microseconds as nanoseconds.
int64_t to_ns(double us) {
  if (!(std::abs(us) < 9e15)) throw Refused{"a time is beyond what a clock says"};
  return std::llround(us * 1000);
}

/// A whole number of a detail; what is none is not told.
int64_t whole(const Scalar& value) {
  if (value.kind != Scalar::Kind::number || !(value.number >= 0 && value.number < 9e15)) return -1;
  return static_cast<int64_t>(value.number);
}

class Walker : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return take({}); }
  bool boolean(bool) override { return take({}); }
  bool number_integer(number_integer_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool string(string_t& value) override { return take({Scalar::Kind::text, 0, std::move(value)}); }
  bool binary(binary_t&) override { return take({}); }
  bool key(string_t& value) override {
    if (depth_ == 1) top_key_ = value;
    key_ = std::move(value);
    return true;
  }

  bool start_object(size_t) override {
    if (in_events() && depth_ == events_depth_) event_ = {};
    if (in_event()) in_args_ = key_ == "args";
    ++depth_;
    return true;
  }
  bool end_object() override {
    --depth_;
    if (in_event()) in_args_ = false;
    if (in_events() && depth_ == events_depth_) finish_event();
    return true;
  }
  bool start_array(size_t) override {
    refuse_element();
    if (depth_ == 0 || (depth_ == 1 && !in_events() && top_key_ == "traceEvents")) {
      events_depth_ = depth_ + 1;
      found_ = true;
    }
    ++depth_;
    return true;
  }
  bool end_array() override {
    if (--depth_ < events_depth_) events_depth_ = 0;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const Json::exception& error) override {
    error_position_ = position;
    error_ = error.what();
    return false;
  }

  bool found() const { return found_; }
  size_t error_position() const { return error_position_; }
  const std::string& error() const { return error_; }
  ChromeTrace& trace() { return trace_; }

 private:
  bool in_events() const { return events_depth_ > 0; }
  bool in_event() const { return in_events() && depth_ == events_depth_ + 1; }

  void refuse_element() const {
    if (in_events() && depth_ == events_depth_) throw Refused{"an event is no object"};
  }
  bool number(double value) { return take({Scalar::Kind::number, value, ""}); }

  bool take(Scalar value) {
    refuse_element();
    if (in_event()) {
      set_field(std::move(value));
    } else if (in_events() && in_args_ && depth_ == events_depth_ + 2) {
      event_.args[key_] = std::move(value);
    }
    return true;
  }

  void set_field(Scalar value) {
    const bool is_number = value.kind == Scalar::Kind::number;
    if (key_ == "ts" && is_number) event_.ts = value.number;
    if (key_ == "dur" && is_number) event_.dur = value.number;
    if (key_ == "name") event_.name = std::move(value.text);
    if (key_ == "cat") event_.category = std::move(value.text);
    if (key_ == "ph") event_.phase = std::move(value.text);
    if (key_ == "pid") event_.pid = std::move(value);
    if (key_ == "tid") event_.tid = std::move(value);
    if (key_ == "id") event_.id = std::move(value);
  }

  int64_t row_number(const Scalar& row) {
    if (row.kind == Scalar::Kind::other) return 0;
    if (row.kind == Scalar::Kind::text) {
      constexpr int64_t first = int64_t{1} << 53;
      return text_rows_.emplace(row.text, first + static_cast<int64_t>(text_rows_.size()))
          .first->second;
    }
    if (!(std::abs(row.number) < 9e15)) throw Refused{"a pid or tid is out of range"};
    return static_cast<int64_t>(row.number);
  }

  void finish_event() {
    const int64_t pid = row_number(event_.pid);
    const int64_t tid = row_number(event_.tid);
    if (event_.phase.empty()) throw Refused{"an event says no kind (\"ph\")"};
    if (event_.phase == "M") return take_name(pid, tid);
    const bool pair = event_.phase == "B" || event_.phase == "E";
    const bool flow = event_.phase == "s" || event_.phase == "f";
    if (event_.phase != "X" && !pair && !flow) return;
    if (!event_.ts) throw Refused{"the event \"" + event_.name + "\" says no time (\"ts\")"};
    if (flow) return take_flow(pid, tid);
    ChromeEvent event{event_.name, event_.category, pid, tid, to_ns(*event_.ts), 0, details()};
    event.end_ns = event.begin_ns;
    if (pair) return take_half(std::move(event));
    const int64_t duration = to_ns(event_.dur.value_or(0));
    if (duration < 0) throw Refused{"the event \"" + event_.name + "\" ends before it begins"};
    event.end_ns = event.begin_ns + duration;
    trace_.events.push_back(std::move(event));
  }

  /// One end of a span. The newest that is open on a row is the one that is closed.
  void take_half(ChromeEvent half) {
    std::vector<ChromeEvent>& open = open_[{half.pid, half.tid}];
    if (event_.phase == "B") return open.push_back(std::move(half));
    if (open.empty()) return;
    ChromeEvent event = std::move(open.back());
    open.pop_back();
    event.end_ns = std::max(event.begin_ns, half.begin_ns);
    trace_.events.push_back(std::move(event));
  }

  void take_flow(int64_t pid, int64_t tid) {
    std::string id = event_.id.text;
    if (event_.id.kind == Scalar::Kind::number) {
      id = std::to_string(event_.id.number);
      id = id.substr(0, id.find_first_not_of("-0123456789"));
    }
    trace_.flows.push_back(
        {event_.name, event_.category, id, pid, tid, to_ns(*event_.ts), event_.phase == "s"});
  }

  void take_name(int64_t pid, int64_t tid) {
    const std::string& name = event_.args["name"].text;
    if (event_.name == "process_name") trace_.processes[pid] = name;
    if (event_.name == "thread_name") trace_.threads[{pid, tid}] = name;
  }

  Details details() {
    auto& args = event_.args;
    Details details;
    details.step = whole(args["step"]);
    details.stage = whole(args["stage"]);
    details.chunk = whole(args["chunk"]);
    details.micro_batch = whole(args["micro_batch"]);
    details.unit = args["unit"].text;
    details.axis = args["axis"].text;
    details.collective = args["collective"].text;
    details.bytes = whole(args["bytes"]);
    details.sequence = whole(args["sequence"]);
    return details;
  }

  ChromeTrace trace_;
  int depth_ = 0;         // brackets that are open
  int events_depth_ = 0;  // inside the array of events: the brackets round an event; else 0
  bool found_ = false;
  bool in_args_ = false;
  std::string top_key_, key_;
  RawEvent event_;
  std::map<std::string, int64_t> text_rows_;
  std::map<std::pair<int64_t, int64_t>, std::vector<ChromeEvent>> open_;
  size_t error_position_ = 0;
  std::string error_;
};

}  // namespace

ChromeTrace parse_chrome_trace(std::string_view text, const std::string& where) {
  const auto refuse = [&](const std::string& why) {
    return core::ConfigError(where + " is no Chrome trace: " + why);
  };
  Walker walker;
  bool whole_text = false;
  try {
    whole_text = Json::sax_parse(text.begin(), text.end(), &walker);
  } catch (const Refused& refused) {
    throw refuse(refused.why);
  }
  // The parser has read beyond the last character: more was to come.
  const bool torn = !whole_text && walker.error_position() > text.size();
  if (!whole_text && !(torn && walker.found())) throw refuse(walker.error());
  if (!walker.found()) throw refuse("it has no array of events (\"traceEvents\")");
  walker.trace().torn = torn;
  return std::move(walker.trace());
}

ChromeTrace read_chrome_trace(const std::string& path) {
  try {
    return parse_chrome_trace(core::read_file(path), path);
  } catch (const core::RunError& error) {
    throw core::ConfigError(error.what());
  }
}

}  // namespace tessera::trace
