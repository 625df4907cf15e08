#include "golden.h"

#include <cstring>

#include "core/error.h"

/// Prints all golden vectors, or with `--estimates` those of plan's estimates. `--broken` breaks an
/// invariant, which must end the program.
int main(int argc, char** argv) {
  using namespace tessera;
  const auto asked = [&](const char* word) { return argc > 1 && std::strcmp(argv[1], word) == 0; };
  CHECK(!asked("--broken"), "asked for");
  if (asked("--estimates")) {
    golden::print_estimates();
    return 0;
  }
  golden::print_values();
  golden::print_specs();
  golden::print_accounts();
  golden::print_runs();
  return 0;
}
