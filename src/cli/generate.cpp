#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"
#include "kernels/device.h"
#include "train/environment.h"
#include "train/generate.h"

namespace tessera::cli {

namespace {

struct Options {
  std::string path;
  std::string prompt;
  std::string tokenizer;
  train::SamplingOptions sampling;
  bool json = false;
};

int run_generate(const Options& options) {
  kernels::set_num_threads(train::threads_of_one_process("generate"));
  train::Generator generator(options.path, options.tokenizer);
  if (options.json) {
    const std::string text = generator.generate(options.prompt, options.sampling, {});
    const nlohmann::ordered_json json = {{"prompt", options.prompt}, {"text", text}};
    fmt::print("{}\n", json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
    return kDone;
  }
  fmt::print("{}", options.prompt);
  generator.generate(options.prompt, options.sampling, [](const std::string& piece) {
    fmt::print("{}", piece);
    std::fflush(stdout);
  });
  fmt::print("\n");
  return kDone;
}

constexpr double kHottest = 1e6;  // draws are as good as uniform long before

/// CLI::Range lets nan pass, and shows the largest double with all its digits.
CLI::Validator number_between(double least, double most) {
  return CLI::Validator(
      [least, most](const std::string& text) {
        double value = 0;
        const bool fits = CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
        return fits ? std::string()
                    : fmt::format("{} is no number from {} to {}", text, least, most);
      },
      fmt::format("from {} to {}", least, most));
}

}  // namespace

void add_generate_verb(CLI::App& app, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = app.add_subcommand("generate", "Sample text from a trained model");
  verb->add_option("path", options->path,
                   "A run, a checkpoint, a Hugging Face folder or a model file of llm.c")
      ->required();
  verb->add_option("--prompt", options->prompt, "The text to continue");
  verb->add_option("--tokenizer", options->tokenizer,
                   "A tokenizer's folder or file [the model's own]");
  train::SamplingOptions& sampling = options->sampling;
  verb->add_option("--max-new-tokens,--max_new_tokens", sampling.max_new_tokens,
                   "Tokens to add at most")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--temperature", sampling.temperature, "0: always the likeliest token")
      ->check(number_between(0, kHottest))
      ->capture_default_str();
  verb->add_option("--top-k,--top_k", sampling.top_k, "Draw from the k likeliest; 0: from all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--top-p,--top_p", sampling.top_p,
                   "Draw from the fewest tokens of this probability; 1: from all")
      ->check(number_between(0, 1))
      ->capture_default_str();
  verb->add_option("--seed", sampling.seed, "The same seed draws the same text")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return text.starts_with('-') ? "a seed is 0 or more, not " + text : std::string();
          },
          ""))
      ->capture_default_str();
  verb->add_flag("--json", options->json, "Print one JSON object: prompt, text");
  verb->callback([options, &status] { status = run_generate(*options); });
}

}  // namespace tessera::cli
