#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "train/verify.h"

// What `tessera verify` says of its layouts: to people, to programs, to a build server.

namespace tessera::cli {

struct VerifyRow {
  train::LayoutVerdict verdict;
  std::string reference;       ///< the layout it was compared with
  train::Tolerance tolerance;  ///< with which
};

/// A line a layout, and what the tolerances were.
std::string verify_table(const std::vector<VerifyRow>& rows);
/// One JSON object. `tolerance`: of layouts without tensor parallelism; each row has its own.
std::string verify_json(const std::vector<VerifyRow>& rows, const train::Tolerance& tolerance,
                        int64_t steps);
/// JUnit's XML: a test case a layout, a failure where it differs, an error where it did not run.
std::string verify_junit(const std::vector<VerifyRow>& rows);

}  // namespace tessera::cli
