#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>

#include "cli/verbs.h"
#include "core/error.h"

namespace {

int fail(const char* message, int status) {
  fmt::print(stderr, "tessera: {}\n", message);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace tessera;
  CLI::App app{"Tessera trains one language model on many ranks that agree on every gradient."};
  app.name("tessera");
  app.set_version_flag("--version", "tessera " TESSERA_VERSION);
  app.require_subcommand(1);
  app.footer(
      "tessera VERB --help tells more. Exit status: 0 done, 1 the run failed, 2 usage or "
      "config, 3 does not fit, 4 verify found a mismatch.");

  int status = cli::kDone;
  cli::add_train_verb(app, status);
  cli::add_launch_verb(app, status);
  cli::add_generate_verb(app, status);
  cli::add_verify_verb(app, status);
  cli::add_checkpoint_verb(app, status);
  cli::add_data_verb(app, status);
  cli::add_data_batches_action(*app.get_subcommand("data"), status);
  cli::add_config_verb(app, status);
  cli::add_bench_verb(app, status);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? cli::kDone : cli::kUsage;
  } catch (const std::exception& error) {
    const bool no_memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
    return fail(no_memory ? "out of memory" : error.what(), cli::exit_status_of(error));
  }
  return status;
}
