#include "core/pages.h"

#include <sys/mman.h>

#include <string>

#include "core/error.h"

namespace tessera::core {

namespace {
// Below this, rounding up to huge pages would cost more memory than faults cost time.
constexpr int64_t kHugeFrom = int64_t{8} << 20;
}  // namespace

void* map_pages(int64_t bytes) {
  if (bytes == 0) return nullptr;
  void* data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) {
    throw MemoryError("out of memory: the system refused " + std::to_string(bytes) +
                      " bytes; use a smaller model, micro_batch_size or seq_len, or "
                      "activation_checkpoint.mode = \"full\"");
  }
  if (bytes >= kHugeFrom) madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);
  return data;
}

void unmap_pages(void* data, int64_t bytes) {
  if (data != nullptr) munmap(data, static_cast<size_t>(bytes));
}

}  // namespace tessera::core
