#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>

#include "cli/config_args.h"
#include "cli/last_word.h"
#include "cli/mesh_table.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "kernels/device.h"
#include "train/agreement.h"
#include "train/environment.h"
#include "train/run_folder.h"
#include "train/thread_ranks.h"
#include "train/trainer.h"
#include "train/world.h"

namespace tessera::cli {

namespace {

namespace fs = std::filesystem;

struct Options {
  ConfigArgs config;
  std::string run_dir;
  bool resume = false;
  bool overwrite = false;
  bool json = false;
};

// A handler may only touch a lock-free atomic; the trainer looks at it between steps.
std::atomic<bool> stop_asked{false};
std::atomic<int> stop_signal{0};

void on_stop_signal(int signal_number) {
  stop_signal = signal_number;
  // Ctrl-C a second time means at once. Other signals come twice without meaning more: a batch
  // system tells ranks and launcher, and the launcher tells the ranks.
  if (stop_asked.exchange(true) && signal_number == SIGINT) {
    signal(SIGINT, SIG_DFL);
    raise(SIGINT);
  }
}

/// SIGTERM, SIGINT and SIGUSR1 end the run after the step under way, with a checkpoint.
void watch_stop_signals() {
  struct sigaction action{};
  action.sa_handler = on_stop_signal;
  sigemptyset(&action.sa_mask);
  for (int signal_number : {SIGTERM, SIGINT, SIGUSR1}) sigaction(signal_number, &action, nullptr);
}

/// Ranks of `tessera launch` end with it. One of mpirun's whose mpirun is killed is told to stop,
/// as mpirun itself would have done: it would go on for ever, where nothing else ties it to the
/// job.
void stop_with_mpirun(const train::RankEnvironment& environment) {
  if (environment.launcher == train::Launcher::open_mpi) prctl(PR_SET_PDEATHSIG, SIGTERM);
}

train::Existing existing_policy(const Options& options, bool restarted) {
  if (options.resume && options.overwrite) {
    throw core::ConfigError(
        "--resume and --overwrite exclude each other: continue the run, or "
        "replace it");
  }
  if (options.resume || restarted) return train::Existing::resume;
  return options.overwrite ? train::Existing::overwrite : train::Existing::refuse;
}

/// Rank 0 tells people about the run; with --json only the summary is printed.
train::Observer make_observer(bool json, const train::RankEnvironment& environment,
                              std::optional<Progress>& progress) {
  train::Observer observer;
  if (json) {  // stdout is one object's alone
    observer.on_notice = [](const std::string& text) { fmt::print(stderr, "{}\n", text); };
    return observer;
  }
  observer.on_notice = [&progress](const std::string& text) {
    if (progress)
      progress->say(text);
    else
      fmt::print("{}\n", text);
  };
  observer.on_start = [&, environment](const spec::RunConfig& config,
                                       const train::Prediction& prediction, int64_t first_step) {
    fmt::print("{} rank(s), {}; each: {}\n", prediction.memory_bytes.size(), environment.source,
               kernels::describe_device());
    if (has_mesh(config)) fmt::print("{}", mesh_table(config));
    int64_t bytes = 0;
    for (int64_t category : prediction.memory_bytes[0]) bytes += category;
    fmt::print("predicted: {:.2f} GiB and {:.1f} MB sent in a step, a rank\n",
               static_cast<double>(bytes) / (1 << 30),
               1e-6 * static_cast<double>(std::accumulate(prediction.bytes_per_step[0].begin(),
                                                          prediction.bytes_per_step[0].end(),
                                                          int64_t{0})));
    std::fflush(stdout);
    progress.emplace(first_step, config.training.steps, config.metrics.log_freq);
  };
  observer.on_step = [&progress](const train::StepRecord& record) { progress->show(record); };
  return observer;
}

void print_summary(const train::Summary& summary, bool json) {
  if (summary.nothing_to_do) {
    if (json) fmt::print("{{\"nothing_to_do\": true}}\n");
    return;
  }
  if (json)
    fmt::print("{}\n", train::to_json(summary));
  else
    fmt::print("\n{}", final_report(summary));
}

/// Trains as one rank. The exit status; what all ranks agree on is thrown by rank 0 alone.
int run_rank(const Options& options, const train::RankEnvironment& environment,
             const train::TrainOptions& train_options, comm::Communicator& comm) {
  std::optional<Progress> progress;
  const auto end_bar = [&] {
    if (progress) progress->finish();
  };
  const bool first = comm.rank() == 0;
  try {
    const train::Summary summary =
        train::train(train_options, comm, make_observer(options.json, environment, progress));
    end_bar();
    if (first) print_summary(summary, options.json);
    // SIGUSR1 is a batch system's early warning: the run did as it was told. The others end it.
    const int ended_by = stop_signal;
    return summary.stopped_early && ended_by != 0 && ended_by != SIGUSR1 ? 128 + ended_by : kDone;
  } catch (const std::exception& error) {
    end_bar();
    const train::Agreed* agreed = dynamic_cast<const train::Agreed*>(&error);
    if (agreed != nullptr && !first) return exit_status_of(error);
    const bool from_peer = dynamic_cast<const core::CommError*>(&error) != nullptr;
    if (agreed == nullptr && !from_peer) comm.abort(error.what());
    throw;
  }
}

/// Ranks of this start: what the launcher made of us, else threads of this process where the config
/// says so.
int64_t world_size_of(const train::RankEnvironment& environment, const spec::RunConfig& config) {
  if (config.comm.backend != spec::Backend::thread || environment.world_size > 1) {
    return environment.world_size;
  }
  const spec::ParallelismConfig& parallelism = config.parallelism;
  return std::max<int64_t>(1, parallelism.data_parallel_degree) *
         spec::ranks_of_replica(parallelism);
}

train::TrainOptions read_options(const Options& options,
                                 const train::RankEnvironment& environment) {
  if (options.run_dir.empty() && options.resume) {
    throw core::ConfigError("--resume needs --run-dir RUN: the folder of the run to continue");
  }
  train::TrainOptions train_options;
  // A run is continued with its own config where none is named, on however many ranks there are.
  const fs::path own = train::RunFolder{options.run_dir}.config();
  const std::string fallback = options.resume && fs::exists(own) ? own.string() : "";
  train_options.config = options.config.read(
      [&](const spec::RunConfig& config) { return world_size_of(environment, config); }, fallback,
      options.resume || environment.restarted);
  train_options.existing = existing_policy(options, environment.restarted);
  train_options.run_dir =
      options.run_dir.empty() ? train::default_run_folder() : fs::path(options.run_dir);
  train_options.stop = &stop_asked;
  if (environment.world_size > 1) train_options.ranks_on_host = environment.local_world_size;
  return train_options;
}

/// As one of the ranks that a launcher started, or alone.
int run_process(const Options& options, const train::RankEnvironment& environment,
                train::TrainOptions train_options) {
  train::World world(environment, train_options.config);
  train_options.num_hosts = world.num_hosts();
  train_options.host_of = world.host_of();
  kernels::set_num_threads(world.environment().num_threads);
  int status = kDone;
  try {
    status = run_rank(options, world.environment(), train_options, world.comm());
  } catch (const train::Agreed&) {
    try {
      world.leave();  // all ranks end like this one
    } catch (const core::CommError&) {
      // What they agreed on is what there is to tell.
    }
    throw;
  }
  world.leave();
  return status;
}

int run_train(const Options& options, const train::RankEnvironment& environment) {
  const train::TrainOptions train_options = read_options(options, environment);
  const int64_t world_size = world_size_of(environment, train_options.config);
  watch_stop_signals();
  stop_with_mpirun(environment);
  if (environment.world_size > 1 || world_size == 1) {
    return run_process(options, environment, train_options);
  }
  kernels::set_num_threads(environment.num_threads);
  std::atomic<int> status{kDone};
  train::run_thread_ranks({static_cast<int>(world_size), environment.num_threads},
                          train::comm_options(train_options.config), [&](comm::Communicator& comm) {
                            const int mine = run_rank(options, environment, train_options, comm);
                            if (mine != kDone) status = mine;
                          });
  return status;
}

}  // namespace

void add_train_verb(CLI::App& app, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("train",
                                      "Train, as one rank or as the rank that the "
                                      "environment says this is");
  options->config.add_to(
      *verb,
      "Writes a run folder: config.toml, metrics.jsonl, checkpoints/, "
      "summary.json. Several ranks: tessera launch --nproc-per-node N -- train …, or "
      "mpirun -n N tessera train …");
  verb->add_option("--run-dir,--run_dir", options->run_dir, "The run folder [runs/DATE-TIME]");
  verb->add_flag("--resume", options->resume, "Continue an existing run from its last checkpoint");
  verb->add_flag("--overwrite", options->overwrite, "Replace an existing run");
  verb->add_flag("--json", options->json, "Print summary.json and nothing else");
  verb->callback([options, &status] {
    const train::RankEnvironment environment = train::rank_environment();
    try {
      status = run_train(*options, environment);
    } catch (const core::ConfigError&) {
      // All ranks were given the same command line: one of them tells what is wrong with it.
      if (environment.rank == 0) throw;
      status = kUsage;
    }
    leave_rank_0_the_last_word(environment, status);
  });
}

}  // namespace tessera::cli
