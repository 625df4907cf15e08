#include "kernels/device.h"

#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "kernels/onednn/onednn.h"

namespace tessera::kernels {
namespace {

Isa processor_isa() {
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl");
  return avx512 ? Isa::avx512 : avx2 ? Isa::avx2 : Isa::ref;
}

/// Under ThreadSanitizer, which takes the barriers of OpenMP's library for races, everything runs
/// in the reference kernels, which use one thread.
Isa widest_allowed() {
#ifdef TESSERA_SANITIZE_thread
  return Isa::ref;
#endif
  const char* setting = std::getenv("TESSERA_ISA");
  if (setting == nullptr || *setting == '\0') return processor_isa();
  const std::string_view name = setting;
  if (name == "ref") return Isa::ref;
  if (name == "avx512") return std::min(processor_isa(), Isa::avx512);
  if (name == "avx2") {
    onednn::hold_to_avx2();
    return std::min(processor_isa(), Isa::avx2);
  }
  throw core::ConfigError("TESSERA_ISA is \"" + std::string(name) +
                          "\", which is no instruction set here; use ref, avx2 or avx512");
}

/// What isa() may not exceed on this thread: thread-local because ranks may be threads.
thread_local Isa limit = Isa::avx512;

const char* name_of(Isa isa) {
  constexpr const char* names[] = {"reference kernels", "avx2", "avx512"};
  return names[static_cast<int>(isa)];
}

}  // namespace

Isa isa() {
  static const Isa widest = widest_allowed();
  return std::min(widest, limit);
}

IsaLimit::IsaLimit(Isa most) : before_(limit) {
  limit = std::min(limit, most);
}
IsaLimit::~IsaLimit() {
  limit = before_;
}

bool has_native_bf16() {
  static const bool processor = __builtin_cpu_supports("avx512bf16");
  return processor && isa() == Isa::avx512;
}

std::string describe_device() {
  const std::string products = isa() == Isa::ref   ? "plain loops"
                               : has_native_bf16() ? "bf16 products native"
                                                   : "bf16 products in fp32";
  const int threads = num_threads();
  return std::string(name_of(isa())) + ", " + products + " (oneDNN " + onednn::version() + "), " +
         std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

int num_threads() {
  return omp_get_max_threads();
}
void set_num_threads(int count) {
  omp_set_num_threads(std::max(1, count));
}

}  // namespace tessera::kernels
