#pragma once

#include <cstdint>
#include <string>

namespace tessera::train {

/// Resident anonymous and shared memory of this process in bytes (RssAnon + RssShmem), from
/// /proc/self/status: what the system says, to hold against the ledger. 0 where there is no /proc.
int64_t process_memory_bytes();

/// Memory that this process may use: the machine's, or its control group's limit where that is
/// lower.
int64_t machine_memory_bytes();

/// Throws MemoryError when `bytes`, of `num_ranks` ranks of this machine together, are more than it
/// has: before they are allocated, as a system that lends memory it has not got ends in a kill.
/// `advice` comes before what always helps; may be empty.
void check_fits(int64_t bytes, const std::string& what, int num_ranks = 1,
                const std::string& advice = {});

}  // namespace tessera::train
