#pragma once

// One file per verb; each adds itself to the program. Only here does Tessera print and exit.

namespace CLI {
class App;
}

namespace tessera::cli {

/// Exit statuses, as the interface fixes them; 128 + n for a signal.
enum ExitStatus : int {
  kDone = 0,
  kRunFailed = 1,
  kUsage = 2,
  kDoesNotFit = 3,
  kMismatch = 4,
};

// Adds a verb; when the user chose it, its callback runs it and sets `status`. Errors are thrown:
// main turns them into messages and exit statuses.
void add_train_verb(CLI::App& app, int& status);
void add_launch_verb(CLI::App& app, int& status);
void add_generate_verb(CLI::App& app, int& status);
void add_verify_verb(CLI::App& app, int& status);
void add_checkpoint_verb(CLI::App& app, int& status);
void add_data_verb(CLI::App& app, int& status);
/// `tessera data batches`, an action of the data verb.
void add_data_batches_action(CLI::App& data_verb, int& status);
void add_config_verb(CLI::App& app, int& status);
void add_bench_verb(CLI::App& app, int& status);

}  // namespace tessera::cli
