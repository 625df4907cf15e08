#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "account/timeline.h"
#include "cli/config_args.h"
#include "spec/schedule.h"

namespace tessera::cli {

/// What a verb about a schedule is told: a run's config, or a schedule and its sizes.
class ScheduleSource {
 public:
  /// A schedule that can be carried out, and how long its actions take.
  struct Found {
    std::string name;  ///< "1f1b", "mine.csv"
    spec::Schedule schedule;
    account::StageTimes times;
    std::string times_of;  ///< what they are, for people
  };

  /// Declares the arguments on `verb`, which must outlive this.
  void add_to(CLI::App& verb, const std::string& about);
  /// Throws ConfigError, with every mistake where the schedule has some.
  Found find() const;

 private:
  Found from_config() const;
  Found from_options() const;

  ConfigArgs config_;
  std::string schedule_;
  int64_t num_ranks_ = 0, num_micro_batches_ = 0, virtual_stages_ = 0;  // 0: not given
  std::vector<double> times_;                                           // F, I, W; empty: not given
};

/// The schedule of a file, or what is wrong with it.
spec::ParsedSchedule checked_schedule(const std::string& path);
/// "mine.csv is no schedule that can be carried out:" and a line for each.
std::string describe_mistakes(const std::string& name, const std::vector<std::string>& mistakes);

}  // namespace tessera::cli
