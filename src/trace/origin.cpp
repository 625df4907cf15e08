#include "trace/origin.h"

#include <chrono>
#include <functional>
#include <string>

#include "core/error.h"
#include "core/file.h"
#include "trace/recorder.h"

namespace tessera::trace {

namespace {

int64_t unix_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// Containers of a host share its monotonic clock, and this name; a restart changes both.
uint64_t host_since_boot() {
  try {
    return std::hash<std::string>{}(core::read_file("/proc/sys/kernel/random/boot_id"));
  } catch (const core::RunError&) {
    return 0;
  }
}

}  // namespace

Origin origin_now() {
  return {now_ns(), unix_now_ns(), host_since_boot()};
}

int64_t on_this_host(const Origin& origin) {
  const Origin here = origin_now();
  if (here.host == origin.host && here.host != 0) return origin.steady_ns;
  return here.steady_ns - (here.unix_ns - origin.unix_ns);
}

}  // namespace tessera::trace
