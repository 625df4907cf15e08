// tessera checkpoint convert: models to and from the files of other programs.

#include "train/convert.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "core/error.h"

namespace tessera::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string path;
  std::string to;
  std::string from;
  std::string dtype;
  train::Conversion conversion;
  uint64_t max_shard_bytes = static_cast<uint64_t>(conversion.max_shard_bytes);
  std::string output;
  bool json = false;
};

train::WeightsPath source_of(const Options& options) {
  if (options.to.empty() == options.from.empty()) {
    throw core::ConfigError(
        "say one of --to and --from: --to hf, --to peft, --from hf or --from llmc");
  }
  const train::WeightsPath weights = train::find_weights(options.path);
  using Kind = train::WeightsKind;
  const auto kind_word = [&] {
    return weights.kind == Kind::hf ? "hf" : weights.kind == Kind::llmc ? "llmc" : "a checkpoint";
  };
  if (!options.from.empty() && options.from != kind_word()) {
    throw core::ConfigError(fmt::format("{} is not what --from {} reads: it is {}", options.path,
                                        options.from, kind_word()));
  }
  return weights;
}

int convert(Options options) {
  const train::WeightsPath weights = source_of(options);
  options.conversion.output = options.output;
  options.conversion.max_shard_bytes = static_cast<int64_t>(
      std::min<uint64_t>(options.max_shard_bytes, std::numeric_limits<int64_t>::max()));
  if (!options.dtype.empty()) {
    options.conversion.dtype = options.dtype == "bf16" ? core::DType::bf16 : core::DType::f32;
  }
  const auto run = options.to == "hf"     ? train::convert_to_hf
                   : options.to == "peft" ? train::convert_to_peft
                                          : train::convert_to_checkpoint;
  const train::Converted done = run(weights, options.conversion);
  if (options.json) {
    const Json json = {{"source", weights.path.string()},
                       {"output", done.output.string()},
                       {"parameters", done.parameters},
                       {"dtype", core::name_of(done.dtype)},
                       {"files", done.files},
                       {"notes", done.notes}};
    fmt::print("{}\n", json.dump(2));
    return kDone;
  }
  for (const std::string& note : done.notes) fmt::print("{}\n", note);
  fmt::print("{}: {} parameters in {}, {}\n", done.output.string(), done.parameters,
             core::name_of(done.dtype), fmt::join(done.files, ", "));
  return kDone;
}

}  // namespace

void add_convert_action(CLI::App& verb, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* sub = verb.add_subcommand(
      "convert", "Write a Hugging Face folder (--to), or a checkpoint (--from) to start from");
  sub->add_option("path", options->path,
                  "--to: a run, a checkpoint or another's model; --from: what is to be read")
      ->required();
  sub->add_option("--to", options->to,
                  "hf: a folder for transformers and everything beside it, adapters added in; "
                  "peft: the adapters alone")
      ->check(CLI::IsMember({"hf", "peft"}));
  sub->add_option("--from", options->from,
                  "hf: a Hugging Face folder; llmc: a GPT-2 model file of llm.c")
      ->check(CLI::IsMember({"hf", "llmc"}));
  sub->add_option("--output", options->output, "The folder to make")->required();
  sub->add_option("--dtype", options->dtype,
                  "fp32 or bf16 [--to: fp32; --from: what holds the weights]")
      ->check(CLI::IsMember({"fp32", "bf16"}));
  sub->add_option("--max-shard-size,--max_shard_size", options->max_shard_bytes,
                  "--to: bytes of a file, or 500MB, 5GB; more go to shards with an index [5GB]")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true));
  sub->add_option("--tokenizer", options->conversion.tokenizer,
                  "A tokenizer's folder or file to put along [the model's own]");
  sub->add_flag("--overwrite", options->conversion.overwrite,
                "Replace an output that was made so before");
  sub->add_flag("--json", options->json, "Print JSON");
  sub->callback([options, &status] { status = convert(*options); });
}

}  // namespace tessera::cli
