#pragma once

// Whose fault is it? The page of error policy:
//   ConfigError    the user's: what is wrong, why, and the nearest value that works. Exit status 2.
//   RunError       the world's: a full disk, a lost file, a loss that is not a number. Exit
//   status 1. MemoryError    the world's too, told apart because starting again would not help.
//   Exit status 3. CommError      a peer's: the operation, its sequence number, and the rank that
//   is missing. Exit 1. CHECK          ours: a bug. Exit status 1, with file and line.
// Nothing under src/ but cli prints, exits or aborts.

#include <stdexcept>
#include <string>

namespace tessera::core {

struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct RunError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The machine has too little memory. Exit status 3.
struct MemoryError : RunError {
  using RunError::RunError;
};

struct CommError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct InternalError : std::logic_error {
  using std::logic_error::logic_error;
};

/// Throws InternalError; what CHECK calls. In a build without exceptions (wasm32) traps instead.
[[noreturn]] void check_failed(const char* condition, const char* file, int line,
                               const std::string& message);

}  // namespace tessera::core

/// CHECK(condition) or CHECK(condition, "why"): an invariant of ours; a failure is a bug here.
#define CHECK(condition, ...)                                                  \
  ((condition) ? static_cast<void>(0)                                          \
               : ::tessera::core::check_failed(#condition, __FILE__, __LINE__, \
                                               ::std::string{__VA_ARGS__}))
