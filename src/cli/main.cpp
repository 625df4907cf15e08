#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>

#include "cli/own_program.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "spec/nearest.h"

namespace {

using namespace tessera;

int fail(const std::string& message, int status) {
  fmt::print(stderr, "tessera: {}\n", message);
  return status;
}

/// A file opened later must not get the number of a standard stream that was closed: what is
/// printed would end up in it.
void open_standard_streams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) == -1 && open("/dev/null", O_RDWR) != stream) std::_Exit(1);
  }
}

/// Between products OpenMP's threads spin for milliseconds unless told otherwise, and a second
/// program on the same cores then slows a step ten- to a hundredfold. libgomp reads its variables
/// before main, so they are set for a second start of this program.
void spin_little(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") != nullptr || std::getenv("GOMP_SPINCOUNT") != nullptr) return;
  setenv("GOMP_SPINCOUNT", "10000", 0);
  execv(cli::own_program().c_str(), argv);  // where that fails, spinning is no error
}

/// CLI11 says of an unknown verb only that one is required.
void check_verb(const CLI::App& app, const char* word) {
  if (word == nullptr || word[0] == '-') return;
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (verb->get_name() == word) return;
    if (!verb->get_group().empty()) names.push_back(verb->get_name());
  }
  const std::string_view nearest = spec::nearest_name(word, {names.begin(), names.end()});
  throw core::ConfigError(fmt::format(
      "\"{}\" is no verb of tessera; {}", word,
      nearest.empty() ? "there are " + spec::join_or(names) : fmt::format("try: {}", nearest)));
}

/// What was printed may not have been written: a full disk, a closed pipe.
int flushed(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  return fail("standard output cannot be written, so the report is incomplete",
              status == cli::kDone ? cli::kRunFailed : status);
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  spin_little(argv);
  CLI::App app{"Tessera trains one language model on many ranks that agree on every gradient."};
  app.name("tessera");
  app.set_version_flag("--version", "tessera " TESSERA_VERSION);
  app.require_subcommand(1);
  app.footer(
      "tessera VERB --help tells more. Exit status: 0 done, 1 the run failed, 2 usage or config, 3 "
      "does not fit in memory, 4 verify found a mismatch, 128 + n for a signal.");

  int status = cli::kDone;
  cli::add_train_verb(app, status);
  cli::add_launch_verb(app, status);
  cli::add_generate_verb(app, status);
  cli::add_verify_verb(app, status);
  cli::add_checkpoint_verb(app, status);
  cli::add_data_verb(app, status);
  cli::add_data_batches_action(*app.get_subcommand("data"), status);
  cli::add_config_verb(app, status);
  cli::add_config_import_action(*app.get_subcommand("config"), status);
  cli::add_schedule_verb(app, status);
  cli::add_exact_verb(app, status);
  cli::add_plan_verb(app, status);
  cli::add_simulate_verb(app, status);
  cli::add_bench_verb(app, status);

  try {
    check_verb(app, argc > 1 ? argv[1] : nullptr);
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? flushed(cli::kDone) : cli::kUsage;
  } catch (const std::filesystem::filesystem_error& error) {
    return fail(fmt::format("cannot use {}: {}; check the path and its permissions",
                            error.path1().string(), error.code().message()),
                cli::kRunFailed);
  } catch (const std::bad_alloc&) {
    return fail("out of memory: use a smaller model, micro_batch_size or seq_len",
                cli::kDoesNotFit);
  } catch (const std::exception& error) {
    return fail(error.what(), cli::exit_status_of(error));
  }
  return flushed(status);
}
