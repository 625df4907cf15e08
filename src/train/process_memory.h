#pragma once

#include <cstdint>
#include <string>

namespace tessera::train {

/// Resident anonymous and shared memory of this process in bytes (RssAnon + RssShmem), from
/// /proc/self/status: what the system says, to hold against the ledger. 0 where there is no /proc.
int64_t process_memory_bytes();

/// Memory that this process may use: the machine's, or its control group's limit where that is
/// lower, or that of a group around it. Where groups are mounted and listed, for tests.
int64_t machine_memory_bytes(const std::string& cgroup_root = "/sys/fs/cgroup",
                             const std::string& cgroup_file = "/proc/self/cgroup");

/// What makes a training take less.
inline constexpr const char* kTrainingAdvice =
    "A smaller model or training.micro_batch_size, training.precision = bf16, "
    "activation_checkpoint.mode = full and lora.rank (adapters on a frozen base) take less";

/// Throws MemoryError when `bytes`, of `num_ranks` ranks of this machine together, are more than it
/// has: before they are allocated, as a system that lends memory it has not got ends in a kill.
void check_fits(int64_t bytes, const std::string& what, int num_ranks = 1,
                const std::string& advice = kTrainingAdvice);

}  // namespace tessera::train
