#include "cli/measured_machine.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "core/error.h"
#include "core/file.h"
#include "formats/machine_file.h"
#include "train/noise_dataset.h"
#include "train/run_data.h"

namespace tessera::cli {

MeasuredRun read_measured_run(const spec::RunConfig& config, int ranks) {
  MeasuredRun run;
  try {
    train::RunData data = train::load_run_data(config);
    run.config = spec::resolved(train::with_vocabulary(config, *data.tokenizer), ranks);
    run.dataset = std::move(data.training);
  } catch (const core::ConfigError& error) {
    // A plan may come before its text does; the shapes are known without it if the vocabulary is.
    if (config.model.vocab_size == 0) throw;
    run.config = spec::resolved(config, ranks);
    run.dataset =
        std::make_shared<train::NoiseDataset>(config.data.seq_len, run.config.model.vocab_size);
    run.note = fmt::format("made-up tokens, each sequence one document, since: {}", error.what());
  }
  return run;
}

account::MachineTimes machine_times(const MeasuredRun& run, train::MachineBench bench,
                                    const std::string& file) {
  account::MachineTimes known;
  if (!file.empty() && std::filesystem::exists(file)) {
    known = formats::parse_machine_times(core::read_file(file), file);
  }
  const account::Company company{bench.ranks, bench.threads};
  if (account::missing_times(run.config, company, known).empty()) return known;
  bench.on_progress = [](const std::string& what) {
    if (isatty(STDERR_FILENO) == 1) fmt::print(stderr, "measuring {}\n", what);
  };
  account::MachineTimes measured =
      train::measure_machine(run.config, bench, *run.dataset, std::move(known));
  if (!file.empty()) core::write_atomically(file, formats::to_json(measured));
  return measured;
}

}  // namespace tessera::cli
