#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "account/parameter_table.h"
#include "cli/config_args.h"
#include "cli/own_program.h"
#include "cli/temporary_folder.h"
#include "cli/verbs.h"
#include "cli/verify_report.h"
#include "core/error.h"
#include "kernels/device.h"
#include "train/environment.h"
#include "train/mpirun.h"
#include "train/run_data.h"
#include "train/run_folder.h"
#include "train/supervisor.h"
#include "train/thread_ranks.h"
#include "train/verify.h"
#include "train/world.h"

// A layout of backend "shm" or "mpi" is run as users run it: by the launcher or by mpirun, as
// processes that execute this program with the hidden verb verify-rank and leave their record in a
// file. "thread" and the reference run in this process.

namespace tessera::cli {

namespace {

using spec::Backend;
using spec::Layout;
using train::VerifyRecord;

struct Options {
  ConfigArgs config;
  std::string layouts = "dp=2; dp=2,accumulate=2";
  int64_t steps = 20;
  std::string junit;
  bool json = false;
};

/// One layout's run: its record, or why there is none.
struct Attempt {
  VerifyRecord record;
  std::string failure;
};

/// The user asked to stop while ranks ran.
struct Interrupted {
  int exit_status;
};

bool runs_as_processes(const Layout& layout) {
  return (layout.backend == Backend::shm || layout.backend == Backend::mpi) && layout.ranks() > 1;
}

Attempt run_as_processes(const spec::RunConfig& config, const Layout& layout, int64_t steps) {
  const TemporaryFolder folder;
  const auto config_path = folder.path() / "config.toml";
  const auto record_path = folder.path() / "record.safetensors";
  train::write_file_atomically(config_path, formats::to_toml(config));
  const std::vector<std::string> command = {
      own_program(),         "verify-rank", config_path.string(), "--steps",
      std::to_string(steps), "--record",    record_path.string()};
  const int ranks = static_cast<int>(layout.ranks());
  std::string said;
  const auto listen = [&](const std::string& line) { said += line + "\n"; };
  train::LaunchOptions launch_options;
  launch_options.ranks = {ranks, ranks};
  launch_options.command = command;
  const train::LaunchOutcome outcome = layout.backend == Backend::mpi
                                           ? train::launch_with_mpirun(ranks, command, listen)
                                           : train::launch(launch_options, listen);
  if (outcome.exit_status > 128) throw Interrupted{outcome.exit_status};
  if (outcome.exit_status != 0) return {{}, "its ranks failed: " + said};
  return {train::load_record(record_path), ""};
}

Attempt run_in_this_process(const spec::RunConfig& config, const data::Dataset& dataset,
                            int64_t ranks, int64_t steps) {
  Attempt attempt;
  const auto work = [&](comm::Communicator& comm) {
    VerifyRecord record = train::record_run(config, dataset, comm, steps);
    if (comm.rank() == 0) attempt.record = std::move(record);
  };
  const int num_threads = train::threads_of_one_process("verify");
  if (ranks == 1) {
    kernels::set_num_threads(num_threads);
    work(*comm::make_self_communicator());
  } else {
    train::run_thread_ranks({static_cast<int>(ranks), num_threads}, train::comm_options(config),
                            work);
  }
  return attempt;
}

Attempt run_layout(const spec::RunConfig& config, const data::Dataset& dataset,
                   const Layout& layout, int64_t steps) {
  try {
    if (runs_as_processes(layout)) return run_as_processes(config, layout, steps);
    return run_in_this_process(config, dataset, layout.ranks(), steps);
  } catch (const std::exception& error) {
    return {{}, error.what()};
  }
}

std::vector<std::string> parameter_names(const spec::RunConfig& config) {
  std::vector<std::string> names;
  for (const auto& parameter : account::parameter_table(config.model, config.lora).parameters) {
    names.push_back(parameter.name);
  }
  return names;
}

/// Violations of one layout of several, named after it.
void add_violations(const Layout& layout, std::vector<spec::Violation> found,
                    std::vector<spec::Violation>& violations) {
  for (spec::Violation& violation : found) {
    violation.where = "--layouts: " + spec::to_string(layout);
    violations.push_back(std::move(violation));
  }
}

/// The config of a layout's run, with the schedule file that it names.
spec::RunConfig config_of(const spec::RunConfig& config, const Layout& layout) {
  spec::RunConfig its = spec::with_layout(config, layout);
  formats::read_schedule_file(its);
  return its;
}

/// Everything for which a layout cannot run.
std::vector<spec::Violation> mistakes_of(const spec::RunConfig& config, const Layout& layout) {
  const int64_t samples = config.training.global_batch_size;
  if (layout.dp > samples) {
    return {{"dp", std::to_string(layout.dp), "more ranks than the samples of a global batch",
             "at most " + std::to_string(samples), ""}};
  }
  std::vector<spec::Violation> violations;
  if (layout.prefetch >= 0 && layout.zero < 3) {
    violations.push_back({"prefetch", std::to_string(layout.prefetch),
                          "is not used: only zero=3 gathers weights", "zero=3", ""});
  }
  try {
    const auto found = spec::validate(config_of(config, layout), layout.ranks());
    violations.insert(violations.end(), found.begin(), found.end());
  } catch (const core::ConfigError& error) {
    violations.push_back({"schedule", layout.schedule, error.what(), "", ""});
  }
  return violations;
}

/// The layouts as they are run: what they do not say is the config's where that fits. Throws
/// ConfigError with all that cannot run, each with why.
std::vector<Layout> read_layouts(const Options& options, const spec::RunConfig& config) {
  spec::LayoutList list = spec::parse_layouts(options.layouts);
  if (list.violations.empty()) {
    for (Layout& layout : list.layouts) {
      layout = spec::completed(layout, config);
      add_violations(layout, mistakes_of(config, layout), list.violations);
    }
  }
  if (!list.violations.empty()) throw core::ConfigError(formats::describe(list.violations));
  return list.layouts;
}

/// Every layout's run. Processes first: they are forked while this process has one thread.
std::vector<Attempt> run_layouts(const spec::RunConfig& config, const data::Dataset& dataset,
                                 const std::vector<Layout>& layouts, int64_t steps) {
  std::vector<Attempt> attempts(layouts.size());
  for (const bool processes : {true, false}) {
    for (size_t i = 0; i < layouts.size(); ++i) {
      if (runs_as_processes(layouts[i]) != processes) continue;
      attempts[i] = run_layout(config_of(config, layouts[i]), dataset, layouts[i], steps);
    }
  }
  return attempts;
}

/// The layout that `layout` is held to, to the bit or within a tolerance. Tensor parallelism sums
/// in another order than one rank does, and nothing else has a part in that order: with invariant
/// numerics its layouts have the bits of the plainest of them, which is close to one rank.
Layout reference_of(const spec::RunConfig& config, const Layout& layout) {
  Layout reference;
  if (config.training.numerics == spec::Numerics::invariant && layout.tp > 1) {
    reference.tp = layout.tp;
    reference.sp = layout.sp == 1 ? 1 : 0;
  }
  return reference;
}

/// Runs what layouts are compared with, each once, and compares.
class Judge {
 public:
  Judge(const spec::RunConfig& config, const data::Dataset& dataset, int64_t steps)
      : config_(config), dataset_(dataset), steps_(steps), names_(parameter_names(config)) {}

  /// Rows of the layout, and before it of a reference that is new and no single rank.
  void judge(const Layout& layout, const Attempt& attempt, std::vector<VerifyRow>& rows) {
    const Layout held_to = reference_of(config_, layout);
    const std::string name = spec::to_string(held_to);
    const bool is_new = references_.count(name) == 0;
    const Attempt& reference = reference_run(held_to);
    if (is_new && held_to.tp > 1) {
      rows.push_back(compared(held_to, reference, Layout{}, reference_run(Layout{}),
                              train::close_tolerance(with(held_to), steps_)));
    }
    rows.push_back(compared(layout, attempt, held_to, reference,
                            train::default_tolerance(with(layout), steps_)));
  }

 private:
  spec::RunConfig with(const Layout& layout) const { return spec::with_layout(config_, layout); }

  const Attempt& reference_run(const Layout& layout) {
    const auto [place, is_new] = references_.try_emplace(spec::to_string(layout));
    if (is_new) place->second = run_layout(with(layout), dataset_, layout, steps_);
    return place->second;
  }

  VerifyRow compared(const Layout& layout, const Attempt& attempt, const Layout& held_to,
                     const Attempt& reference, const train::Tolerance& tolerance) const {
    VerifyRow row{{}, spec::to_string(held_to), tolerance};
    row.verdict.why = attempt.failure.empty() ? reference.failure : attempt.failure;
    row.verdict.failed = !row.verdict.why.empty();
    if (!row.verdict.failed) {
      row.verdict = train::compare(reference.record, attempt.record, names_, tolerance);
    }
    row.verdict.layout = spec::to_string(layout);
    return row;
  }

  const spec::RunConfig& config_;
  const data::Dataset& dataset_;
  int64_t steps_;
  std::vector<std::string> names_;
  std::map<std::string, Attempt> references_;
};

int run_verify(const Options& options) {
  train::threads_of_one_process("verify");  // refuses copies that an MPI launcher started
  spec::RunConfig config = options.config.read(0);
  config.parallelism.data_parallel_degree = 1;
  const train::RunData data = train::load_run_data(config);
  config = spec::resolved(train::with_vocabulary(config, *data.tokenizer), 1);
  const std::vector<Layout> layouts = read_layouts(options, config);
  const int64_t steps = std::min(options.steps, config.training.steps);

  std::vector<Attempt> attempts;
  try {
    attempts = run_layouts(config, *data.training, layouts, steps);
  } catch (const Interrupted& interrupted) {
    return interrupted.exit_status;
  }
  Judge judge(config, *data.training, steps);
  std::vector<VerifyRow> rows;
  for (size_t i = 0; i < layouts.size(); ++i) judge.judge(layouts[i], attempts[i], rows);

  const bool all_ok =
      std::all_of(rows.begin(), rows.end(), [](const VerifyRow& row) { return row.verdict.ok; });
  if (!options.junit.empty()) train::write_file_atomically(options.junit, verify_junit(rows));
  if (options.json) {
    const spec::RunConfig alone = spec::with_layout(config, Layout{});
    fmt::print("{}\n", verify_json(rows, train::default_tolerance(alone, steps), steps));
  } else {
    fmt::print("{}{}\n", verify_table(rows),
               all_ok ? "every layout trains the model that one rank trains"
                      : "some layout was not shown to train the model that one rank trains");
  }
  const bool failed = std::any_of(rows.begin(), rows.end(),
                                  [](const VerifyRow& row) { return row.verdict.failed; });
  return all_ok ? kDone : failed ? kRunFailed : kMismatch;
}

struct RankOptions {
  std::string config;
  std::string record;
  int64_t steps = 0;
};

/// One process of a "shm" or "mpi" layout.
int run_verify_rank(const RankOptions& options) {
  spec::RunConfig config = formats::parse_config(train::read_file(options.config), options.config);
  formats::read_schedule_file(config);
  train::World world(train::rank_environment(), config);
  kernels::set_num_threads(world.environment().num_threads);
  comm::Communicator& comm = world.comm();
  try {
    const train::RunData data = train::load_run_data(config);
    const VerifyRecord record = train::record_run(config, *data.training, comm, options.steps);
    if (comm.rank() == 0) train::save_record(options.record, record);
  } catch (const std::exception& error) {
    comm.abort(error.what());
    throw;
  }
  world.leave();
  return kDone;
}

}  // namespace

void add_verify_verb(CLI::App& app, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand(
      "verify", "Train a few steps in each layout and on one rank, and compare what comes out");
  options->config.add_to(
      *verb,
      "Layouts: key=value joined by commas, layouts by semicolons; of values divided by bars, as "
      "in "
      "tp=1|2,zero=0|1, every combination is a layout. Keys: dp, tp, sp (0, 1), pp, schedule "
      "(gpipe, "
      "1f1b, interleaved, zb-h1, zb-v, FILE.csv), v (stages on each rank of the pipeline), "
      "accumulate "
      "or micro_batch, recompute, zero, shard, bucket_bytes, prefetch, backend (thread, shm, mpi). "
      "Sharding, sp, schedule and v that a layout does not name are the config's; a pipeline takes "
      "2 "
      "pp micro-batches by itself. With training.numerics = \"invariant\" a layout is compared to "
      "the bit, one with tp > 1 with the plainest of its tp and sp. Exit status 4 when a layout "
      "differs.");
  verb->add_option("--layouts", options->layouts, "What to compare with one rank")
      ->capture_default_str();
  verb->add_option("--steps", options->steps, "Steps to train (at most training.steps)")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  verb->add_option("--junit", options->junit, "Also write the outcome to FILE as JUnit's XML")
      ->type_name("FILE");
  verb->add_flag("--json", options->json, "Print one JSON object");
  verb->callback([options, &status] { status = run_verify(*options); });

  auto rank_options = std::make_shared<RankOptions>();
  CLI::App* rank = app.add_subcommand("verify-rank", "")->group("");
  rank->add_option("config", rank_options->config)->required();
  rank->add_option("--steps", rank_options->steps)->required();
  rank->add_option("--record", rank_options->record)->required();
  rank->callback([rank_options, &status] { status = run_verify_rank(*rank_options); });
}

}  // namespace tessera::cli
