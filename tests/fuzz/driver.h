#pragma once

// Fuzzing of what reads files. A target is one file fuzz_NAME.cpp that defines
//   extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
//   std::vector<std::string> tessera::fuzz::seeds();
//   std::vector<std::string> tessera::fuzz::dictionary();
// and is linked either with libFuzzer, or with driver.cpp, whose main() changes the seeds at
// random, the same way for the same --seed. A target accepts its input or refuses it by ConfigError
// or RunError (see `refused`), holds what it accepted to what must be true of it (`expect`), and
// lets every other exception fly.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace tessera::fuzz {

/// Good inputs, to be damaged.
std::vector<std::string> seeds();
/// Pieces of which inputs consist: keys, magic numbers, odd values.
std::vector<std::string> dictionary();

/// The bytes of a little-endian value, for seeds and dictionaries.
template <class T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

inline std::string_view as_text(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Ends the program when an accepted input is not what it must be.
inline void expect(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "fuzz: not true of an accepted input: %s\n", what);
  std::abort();
}

/// How many inputs were accepted, to see that a target tests more than its first line.
inline uint64_t accepted = 0;

/// Runs `body`; true when the input was refused as a user is told.
template <class Body>
bool refused(const Body& body) {
  try {
    body();
    ++accepted;
    return false;
  } catch (const core::ConfigError& error) {
    expect(std::string_view(error.what()).size() > 10, "a refusal says why");
    return true;
  } catch (const core::RunError&) {
    return true;
  }
}

/// A folder of this process for inputs that must be files; removed at exit.
std::string folder();
/// Writes a file there; returns its path.
std::string write_file(const std::string& name, std::string_view content);

}  // namespace tessera::fuzz
