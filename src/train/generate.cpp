#include "train/generate.h"

#include <fmt/format.h>

#include <algorithm>

#include "account/memory.h"
#include "core/arena.h"
#include "core/error.h"
#include "model/layer_factory.h"
#include "model/lora.h"
#include "model/transformer.h"
#include "parallel/model_state.h"
#include "train/process_memory.h"
#include "train/start_weights.h"

namespace tessera::train {

namespace fs = std::filesystem;
using core::ConstView;
using core::DType;
using core::View;

namespace {

std::shared_ptr<const data::Tokenizer> load_tokenizer(const WeightsPath& weights,
                                                      const spec::RunConfig& config,
                                                      const std::string& given) {
  const std::string name = given.empty() ? tokenizer_of(weights, config) : given;
  if (name.empty()) {
    throw core::ConfigError(weights.path.string() +
                            " comes without a tokenizer; name one with --tokenizer FOLDER");
  }
  auto tokenizer = data::load_tokenizer(name);
  if (config.model.vocab_size < tokenizer->vocab_size()) {
    throw core::ConfigError(fmt::format(
        "The tokenizer \"{}\" has {} tokens, but the model \"{}\" has {}: it is not "
        "the tokenizer that the model was trained with. {}",
        name, tokenizer->vocab_size(), weights.path.string(), config.model.vocab_size,
        given.empty() ? "Name that one with --tokenizer."
                      : "Name that one, or leave --tokenizer out for the model's own."));
  }
  return tokenizer;
}

}  // namespace

namespace {

account::ParameterTable table_that_fits(const spec::RunConfig& config) {
  account::ParameterTable table = account::parameter_table(config.model, config.lora);
  check_fits(account::state_bytes(table, config.training).weights, "the model");
  return table;
}

}  // namespace

class Generator::Impl {
 public:
  Impl(const fs::path& path, const std::string& tokenizer)
      : path_(find_weights(path)),
        config_(config_of(path_)),
        tokenizer_(load_tokenizer(path_, config_, tokenizer)),
        table_(table_that_fits(config_)),
        state_(table_, config_.training, /*for_training=*/false, ledger_),
        arena_(ledger_, core::Category::activations, 0),
        transformer_(config_.model, state_.parameters(), factory_, hooks_,
                     {spec::dtype_of(config_.training.precision), spec::Recompute::none}) {
    load_weights(path_, config_, state_);
  }

  std::string generate(const std::string& prompt, const SamplingOptions& options,
                       const std::function<void(const std::string&)>& on_text);

 private:
  std::vector<float> next_logits(const std::vector<int32_t>& tokens);

  WeightsPath path_;
  spec::RunConfig config_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  core::MemoryLedger ledger_;
  account::ParameterTable table_;
  parallel::ModelState state_;
  core::Arena arena_;
  model::DenseFactory dense_;
  model::LoraFactory factory_{dense_, spec::lora_scale(config_.lora)};
  model::UnitHooks hooks_;
  model::Transformer transformer_;
};

/// Logits [V] after the tokens, of which as many as the positions reach are seen.
std::vector<float> Generator::Impl::next_logits(const std::vector<int32_t>& tokens) {
  const auto window =
      std::min<int64_t>(static_cast<int64_t>(tokens.size()), spec::longest_sequence(config_.model));
  const core::Shape shape{1, window};
  const int64_t sample = 0;
  const auto last = static_cast<int32_t>(window - 1);
  std::vector<float> logits(static_cast<size_t>(config_.model.vocab_size));
  model::Pass pass{arena_, {}};
  pass.training = false;
  pass.batch.inputs = ConstView{tokens.data() + tokens.size() - window, DType::i32, shape};
  pass.batch.samples = ConstView{&sample, DType::i64, {1}};
  transformer_.logits(pass, ConstView{&last, DType::i32, {1}},
                      View{logits.data(), DType::f32, {1, config_.model.vocab_size}});
  return logits;
}

std::string Generator::Impl::generate(const std::string& prompt, const SamplingOptions& options,
                                      const std::function<void(const std::string&)>& on_text) {
  std::vector<int32_t> tokens = tokenizer_->vocabulary().prefix;
  const std::vector<int32_t> words = tokenizer_->encode(prompt);
  tokens.insert(tokens.end(), words.begin(), words.end());
  // Nothing was said: start as a document does, behind a separator.
  if (tokens.empty()) tokens.push_back(tokenizer_->separator());
  std::string text;
  for (int64_t i = 0; i < options.max_new_tokens; ++i) {
    std::vector<float> logits = next_logits(tokens);
    logits.resize(std::min(logits.size(), static_cast<size_t>(tokenizer_->vocab_size())));
    const int32_t token = sample_token(std::move(logits), options, i);
    if (token == tokenizer_->separator()) break;
    tokens.push_back(token);
    const std::string piece = tokenizer_->decode({&token, 1});
    text += piece;
    if (on_text) on_text(piece);
  }
  return text;
}

Generator::Generator(const fs::path& path, const std::string& tokenizer)
    : impl_(std::make_unique<Impl>(path, tokenizer)) {}
Generator::~Generator() = default;

std::string Generator::generate(const std::string& prompt, const SamplingOptions& options,
                                const std::function<void(const std::string&)>& on_text) {
  return impl_->generate(prompt, options, on_text);
}

}  // namespace tessera::train
