#include "cli/schedule_source.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "data/tokenizer.h"
#include "train/run_data.h"

namespace tessera::cli {

using spec::ScheduleKind;

namespace {

constexpr int64_t kMostActions = 1'000'000;

[[noreturn]] void refuse_name(const std::string& name) {
  throw core::ConfigError(fmt::format("--schedule {}: no schedule of that name; try: {}", name,
                                      spec::nearest_schedules(name)));
}

}  // namespace

spec::ParsedSchedule checked_schedule(const std::string& path) {
  std::error_code unknown;
  if (std::filesystem::exists(path, unknown) && !std::filesystem::is_regular_file(path, unknown)) {
    throw core::ConfigError(path + " is no file");
  }
  std::string text;
  try {
    text = core::read_file(path);
  } catch (const core::FileError& error) {
    throw core::ConfigError(error.what());
  }
  spec::ParsedSchedule parsed = spec::parse_schedule(text);
  if (parsed.errors.empty()) parsed.errors = spec::mistakes(parsed.schedule);
  return parsed;
}

std::string describe_mistakes(const std::string& name, const std::vector<std::string>& mistakes) {
  constexpr size_t kShown = 40;
  std::string text = name + " is no schedule that can be carried out:";
  for (size_t i = 0; i < std::min(mistakes.size(), kShown); ++i) text += "\n  " + mistakes[i];
  if (mistakes.size() > kShown) {
    text += fmt::format("\n  and {} more; --json lists all", mistakes.size() - kShown);
  }
  return text;
}

void ScheduleSource::add_to(CLI::App& verb, const std::string& about) {
  config_.add_to(verb, about + "\nWithout a config: a schedule of equal stages.");
  verb.add_option("--schedule", schedule_,
                  "gpipe, 1f1b, interleaved, zb-h1, zb-v, or a file of PyTorch's CSV (1f1b)");
  verb.add_option("--pp", num_ranks_, "ranks of the pipeline (4)")->check(CLI::Range(1, 1024));
  verb.add_option("--micro-batches", num_micro_batches_, "micro-batches of a step (8)")
      ->check(CLI::Range(1, 65536));
  verb.add_option("--virtual-stages", virtual_stages_,
                  "stages of a rank (2 of interleaved and zb-v, else 1)")
      ->check(CLI::Range(1, 64));
  verb.add_option("--times", times_,
                  "what a stage's forward F, its input's gradient I and its weights' W take, in "
                  "ticks; a whole backward B takes I + W (1,1,1; of a config: by FLOPs)")
      ->type_name("F,I,W")
      ->delimiter(',')
      ->expected(3)
      ->check(CLI::Range(0.0, 1e6));
}

ScheduleSource::Found ScheduleSource::find() const {
  const formats::ConfigSources sources = config_.sources();
  const bool has_config = !sources.files.empty() || !sources.overrides.empty();
  const bool has_options =
      !schedule_.empty() || num_ranks_ > 0 || num_micro_batches_ > 0 || virtual_stages_ > 0;
  if (has_config && has_options) {
    throw core::ConfigError(
        "a config has its own schedule: change it by --parallelism.pipeline_schedule and the like, "
        "or leave the config out");
  }
  Found found = has_config ? from_config() : from_options();
  if (times_.size() != 3) return found;
  const account::ActionTimes times{times_[0], times_[1] + times_[2], times_[1], times_[2]};
  if (!std::isfinite(times.forward + times.backward)) {
    throw core::ConfigError("--times: has to be three numbers, as in 1,1,1");
  }
  if (times.forward + times.backward <= 0) throw core::ConfigError("--times: nothing takes time");
  found.times = account::even_times(found.schedule, times);
  found.times_of = fmt::format("F {:g}, B {:g}, I {:g}, W {:g} of every stage", times.forward,
                               times.backward, times.backward_input, times.backward_weight);
  return found;
}

ScheduleSource::Found ScheduleSource::from_config() const {
  int64_t world_size = 1;
  spec::RunConfig config = config_.read([&](const spec::RunConfig& read) {
    // What a schedule depends on is one replica's, if their number is left open.
    const spec::ParallelismConfig& degrees = read.parallelism;
    const auto of = [](int64_t degree) { return std::max<int64_t>(degree, 1); };
    world_size = of(degrees.tensor_parallel_degree) * of(degrees.pipeline_parallel_degree) *
                 of(degrees.data_parallel_degree);
    return world_size;
  });
  if (config.model.vocab_size == 0) {  // the head's FLOPs
    config = train::with_vocabulary(config, *data::load_tokenizer(config.data.tokenizer));
  }
  config = spec::resolved(config, world_size);
  Found found;
  found.name = config.parallelism.pipeline_schedule;
  found.schedule = spec::schedule_of(config);
  found.times = account::stage_times(config);
  found.times_of = "by FLOPs, a tick is the forward of a block";
  return found;
}

ScheduleSource::Found ScheduleSource::from_options() const {
  Found found;
  found.name = schedule_.empty() ? "1f1b" : schedule_;
  const std::optional<ScheduleKind> kind = spec::schedule_kind(found.name);
  if (!kind) refuse_name(found.name);
  if (kind == ScheduleKind::csv) {
    if (num_ranks_ > 0 || num_micro_batches_ > 0 || virtual_stages_ > 0) {
      throw core::ConfigError(found.name +
                              " says itself how many ranks, stages and micro-batches "
                              "there are: leave out --pp, --virtual-stages and --micro-batches");
    }
    spec::ParsedSchedule parsed = checked_schedule(found.name);
    if (!parsed.errors.empty()) {
      throw core::ConfigError(describe_mistakes(found.name, parsed.errors));
    }
    found.schedule = std::move(parsed.schedule);
  } else {
    const int64_t num_ranks = num_ranks_ > 0 ? num_ranks_ : 4;
    const int64_t num_micro_batches = num_micro_batches_ > 0 ? num_micro_batches_ : 8;
    const int64_t chunks = virtual_stages_ > 0 ? virtual_stages_ : spec::usual_chunks(*kind);
    if (!spec::takes_chunks(*kind, chunks)) {
      throw core::ConfigError(
          fmt::format("--virtual-stages {}: {} has {} a rank; interleaved has "
                      "any number",
                      chunks, found.name, spec::usual_chunks(*kind)));
    }
    if (num_ranks * chunks * num_micro_batches > kMostActions) {
      throw core::ConfigError(
          fmt::format("{} stages of {} micro-batches are more than can be "
                      "looked at; the product may be up to {}",
                      num_ranks * chunks, num_micro_batches, kMostActions));
    }
    found.schedule = spec::make_schedule(*kind, num_ranks, chunks, num_micro_batches);
  }
  found.times = account::even_times(found.schedule, {});
  found.times_of = "F 1, B 2, I 1, W 1 of every stage";
  return found;
}

}  // namespace tessera::cli
