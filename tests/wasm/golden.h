#pragma once

// Golden vectors: what the pure modules (values of core, spec, account, plan) say of fixed
// questions, as lines of text. The same lines come from the host's compiler and from clang for
// wasm32, whose size_t has 32 bits and whose standard library is another; both are held against
// golden.txt.

#include <cstdint>
#include <string>

namespace tessera::golden {

/// FNV-1a over `text`, for what is too long to be printed.
inline uint64_t digest(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

// Each prints its lines to standard output.
void print_values();    ///< of core: random numbers, rounding to bf16
void print_specs();     ///< presets, validation, layouts, stages, schedules
void print_accounts();  ///< parameter tables, memory, traffic, timelines
void print_runs();      ///< failures, scaling laws, costs
/// Of plan, with the constants of the day: these change as rows are added to what they are fitted
/// on, so the two machines are held against each other and not against a file.
void print_estimates();

}  // namespace tessera::golden
