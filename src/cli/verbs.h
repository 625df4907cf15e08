#pragma once

// One file per verb; each adds itself to the program. Only here does Tessera print and exit.

#include <exception>

namespace CLI {
class App;
}

namespace tessera::cli {

/// Exit statuses. `launch` adds 128 + n where it was told to stop with signal n.
enum ExitStatus : int {
  kDone = 0,
  kRunFailed = 1,
  kUsage = 2,
  kDoesNotFit = 3,
  kMismatch = 4,
};

/// The exit status that an error stands for.
ExitStatus exit_status_of(const std::exception& error);

// Adds a verb; when the user chose it, its callback runs it and sets `status`. Errors are thrown:
// main turns them into messages and exit statuses.
void add_train_verb(CLI::App& app, int& status);
void add_launch_verb(CLI::App& app, int& status);
void add_generate_verb(CLI::App& app, int& status);
void add_verify_verb(CLI::App& app, int& status);
void add_checkpoint_verb(CLI::App& app, int& status);
/// `tessera checkpoint convert`, an action of the checkpoint verb.
void add_convert_action(CLI::App& checkpoint_verb, int& status);
void add_data_verb(CLI::App& app, int& status);
/// `tessera data batches`, an action of the data verb.
void add_data_batches_action(CLI::App& data_verb, int& status);
void add_config_verb(CLI::App& app, int& status);
/// `tessera config import`, an action of the config verb.
void add_config_import_action(CLI::App& config_verb, int& status);
void add_schedule_verb(CLI::App& app, int& status);
void add_exact_verb(CLI::App& app, int& status);
void add_plan_verb(CLI::App& app, int& status);
void add_simulate_verb(CLI::App& app, int& status);
/// `tessera plan validate` and `tessera plan calibrate`, actions of the plan verb.
void add_plan_validate_action(CLI::App& plan_verb);
void add_plan_calibrate_action(CLI::App& plan_verb, int& status);
void add_bench_verb(CLI::App& app, int& status);
/// `tessera bench comm`, an action of the bench verb.
void add_bench_comm_action(CLI::App& bench_verb, int& status);
/// `tessera bench kernels`, an action of the bench verb.
void add_bench_kernels_action(CLI::App& bench_verb, int& status);

}  // namespace tessera::cli
