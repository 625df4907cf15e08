#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/collective_bench.h"
#include "comm/link_fit.h"

namespace tessera::cli {

/// What `bench comm` has measured.
struct CommReport {
  int ranks = 1;
  std::string backend;
  bool pinned = false;  ///< a core for each rank
  comm::CollectiveBenchOptions options;
  struct Measurement {
    comm::MeasuredKind kind;
    std::vector<comm::CollectiveTime> times;
  };
  std::vector<Measurement> measurements;

  int64_t wrong() const;     ///< values, of all that were checked
  double avg_busbw() const;  ///< bytes / s, the mean over all rows
};

/// nccl-tests' lines: before the first row of a collective, a row, and after the last.
std::string table_head(const CommReport& report, const comm::MeasuredKind& kind);
std::string table_row(const CommReport& report, const comm::MeasuredKind& kind,
                      const comm::CollectiveTime& time);
std::string table_end(const CommReport& report);

/// The link that the times tell; nothing where they do not.
std::optional<comm::LinkFit> link_of(const CommReport& report);
/// A links file: one [[link]], named for what carried the messages.
std::string links_file(const CommReport& report, const comm::LinkFit& link);

std::string to_json(const CommReport& report);

}  // namespace tessera::cli
