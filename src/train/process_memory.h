#pragma once

#include <cstdint>

namespace tessera::train {

/// Resident anonymous and shared memory of this process in bytes (RssAnon + RssShmem), from
/// /proc/self/status: what the system says, to hold against the ledger. 0 where there is no /proc.
int64_t process_memory_bytes();

/// Memory that this process may use: the machine's, or its control group's limit where that is
/// lower.
int64_t machine_memory_bytes();

}  // namespace tessera::train
