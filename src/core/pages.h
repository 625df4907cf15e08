#pragma once

#include <cstdint>

namespace tessera::core {

/// Zeroed pages from the system, in huge pages where it has them. Throws MemoryError that says how
/// much was asked for. `bytes` may be 0.
void* map_pages(int64_t bytes);
/// Gives `bytes` at `data` (from map_pages) back. nullptr is allowed.
void unmap_pages(void* data, int64_t bytes);

}  // namespace tessera::core
