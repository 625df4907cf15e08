// Chrome traces.

#include "driver.h"
#include "trace/chrome_reader.h"

std::vector<std::string> tessera::fuzz::seeds() {
  return {
      R"({"displayTimeUnit":"ms","otherData":{"rank":0},"traceEvents":[
{"pid":0,"tid":0,"ph":"M","name":"process_name","args":{"name":"rank 0"}},
{"pid":0,"tid":2,"ph":"X","cat":"comm","name":"all-gather","ts":2.001,"dur":2.999,"args":{"step":7,"axis":"dp","bytes":4096,"sequence":3}}
]})",
      R"([{"name":"a","ph":"B","ts":1,"pid":"p","tid":"t"},{"ph":"E","ts":2,"pid":"p","tid":"t"}])",
      R"([{"name":"a","ph":"X","ts":-1e3,"dur":1,"pid":1,"args":{"deep":[{"x":null}]}})"};
}

std::vector<std::string> tessera::fuzz::dictionary() {
  return {"\"ph\":",           "\"B\"", "\"E\"", "\"ts\":", "\"dur\":", "\"args\":{",
          "\"traceEvents\":[", "1e308"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  tessera::trace::ChromeTrace trace;
  if (tessera::fuzz::refused([&] { trace = tessera::trace::parse_chrome_trace(text, "t.json"); })) {
    return 0;
  }
  for (const tessera::trace::ChromeEvent& event : trace.events) {
    tessera::fuzz::expect(event.begin_ns <= event.end_ns, "no span ends before it begins");
  }
  return 0;
}
