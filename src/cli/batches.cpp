#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "cli/config_args.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "formats/safetensors.h"
#include "train/batch_loader.h"
#include "train/run_data.h"

namespace tessera::cli {

namespace {

struct Options {
  ConfigArgs config;
  int64_t steps = 1;
  std::string output;
  bool overwrite = false;
};

int write_batches(const Options& options) {
  if (std::filesystem::exists(options.output) && !options.overwrite) {
    throw core::ConfigError(options.output +
                            " exists; choose another --output, or replace it with --overwrite");
  }
  spec::RunConfig config = options.config.read(0);
  config.parallelism.data_parallel_degree = 1;
  const train::RunData data = train::load_run_data(config);
  config = spec::resolved(train::with_vocabulary(config, *data.tokenizer), 1);
  config.training.micro_batch_size = config.training.global_batch_size;
  const train::BatchLoader loader(*data.training, config.training, 1, 0, train::SampleOrigin{});

  const core::Shape shape{options.steps, config.training.global_batch_size, config.data.seq_len};
  std::vector<int32_t> inputs, labels, doc_start;
  for (int64_t step = 1; step <= options.steps; ++step) {
    const data::Batch batch = loader.micro_batches(step).at(0);
    inputs.insert(inputs.end(), batch.inputs.begin(), batch.inputs.end());
    labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
    doc_start.insert(doc_start.end(), batch.doc_start.begin(), batch.doc_start.end());
  }
  const std::string temporary = options.output + ".tmp";
  formats::write_safetensors(temporary,
                             {{"inputs", {inputs.data(), core::DType::i32, shape}},
                              {"labels", {labels.data(), core::DType::i32, shape}},
                              {"doc_start", {doc_start.data(), core::DType::i32, shape}}});
  std::filesystem::rename(temporary, options.output);
  fmt::print("{}: {} global batches of {} sequences of {} tokens\n", options.output, options.steps,
             config.training.global_batch_size, config.data.seq_len);
  return kDone;
}

}  // namespace

void add_data_batches_action(CLI::App& data_verb, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = data_verb.add_subcommand(
      "batches", "Write what the first steps of a run train on, for other programs");
  options->config.add_to(*sub,
                         "Writes a safetensors file: inputs, labels (-1: does not count) and "
                         "doc_start, int32 [steps, global batch, seq_len].");
  sub->add_option("--steps", options->steps, "Global batches")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  sub->add_option("--output", options->output, "The safetensors file to write")->required();
  sub->add_flag("--overwrite", options->overwrite, "Replace an existing output");
  sub->callback([options, &status] { status = write_batches(*options); });
}

}  // namespace tessera::cli
