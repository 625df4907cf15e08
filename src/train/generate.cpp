#include "train/generate.h"

#include <fmt/format.h>

#include <algorithm>

#include "account/memory.h"
#include "account/model_part.h"
#include "core/arena.h"
#include "core/error.h"
#include "model/layer_factory.h"
#include "model/lora.h"
#include "model/transformer.h"
#include "parallel/mesh_groups.h"
#include "parallel/model_state.h"
#include "parallel/pipeline/pipeline.h"
#include "parallel/tensor/tensor_factory.h"
#include "train/agreement.h"
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

/// The config of the weights, laid out over the ranks that generate; one sequence at a time.
spec::RunConfig config_for(const WeightsPath& weights, int64_t tp, int64_t pp) {
  spec::RunConfig config = config_of(weights);
  config.model = spec::resolved(config.model);
  config.parallelism = {};
  config.parallelism.data_parallel_degree = 1;
  config.parallelism.tensor_parallel_degree = tp;
  config.parallelism.pipeline_parallel_degree = pp;
  config.training.global_batch_size = 1;
  config.training.micro_batch_size = 1;
  return config;
}

/// Refuses a layout of another number of ranks, or one that the model cannot be cut for.
void check_layout(const spec::RunConfig& config, int num_ranks) {
  const int64_t tp = config.parallelism.tensor_parallel_degree;
  const int64_t pp = config.parallelism.pipeline_parallel_degree;
  if (tp * pp != num_ranks) {
    throw core::ConfigError(
        fmt::format("tp={}, pp={} is a layout of {} ranks, but there are {}: start that many "
                    "(--nproc-per-node), or say another --layout",
                    tp, pp, tp * pp, num_ranks));
  }
  std::string refused;
  spec::RunConfig unresolved = config;
  unresolved.parallelism.data_parallel_degree = -1;
  for (const spec::Violation& violation : spec::validate(unresolved, num_ranks)) {
    // What training alone would need is nobody's concern here.
    if (violation.key.rfind("parallelism.", 0) != 0) continue;
    refused += fmt::format("\n  {} = {}: {}", violation.key, violation.value, violation.why);
  }
  if (!refused.empty()) {
    throw core::ConfigError(fmt::format("this model cannot be cut so:{}", refused));
  }
}

account::ParameterTable table_that_fits(const spec::RunConfig& config, int rank) {
  account::ParameterTable table =
      account::parameter_table(config.model, config.lora, account::part_of(config, rank));
  check_fits(account::state_bytes(table, config.training).weights, "the model");
  return table;
}

}  // namespace

class Generator::Impl {
 public:
  Impl(const fs::path& path, const std::string& tokenizer, comm::Communicator& world, int64_t tp,
       int64_t pp)
      : path_(find_weights(path)),
        config_(config_for(path_, tp, pp)),
        tokenizer_(load_tokenizer(path_, config_, tokenizer)),
        world_(world) {
    check_layout(config_, world.size());
    table_ = table_that_fits(config_, world.rank());
    state_ = std::make_unique<parallel::ModelState>(table_, config_.training,
                                                    /*for_training=*/false, ledger_);
    load_weights(path_, config_, *state_);
  }

  /// Collective, after all ranks have come through the constructor.
  void connect() {
    groups_ = std::make_unique<parallel::MeshGroups>(world_, config_);
    if (groups_->tp().size() > 1) {
      tensor_ = std::make_unique<parallel::TensorFactory>(groups_->tp());
    }
    const model::LayerFactory& layers = tensor_ ? *tensor_ : dense_;
    factory_ = std::make_unique<model::LoraFactory>(layers, spec::lora_scale(config_.lora));
    stage_ = std::make_unique<model::Transformer>(
        config_.model, parallel::stage_of_chunk(table_, 0), state_->parameters(), *factory_, hooks_,
        model::TransformerOptions{dtype(), spec::Recompute::none});
  }

  std::string generate(const std::string& prompt, const SamplingOptions& options,
                       const std::function<void(const std::string&)>& on_text);

 private:
  std::vector<float> next_logits(const std::vector<int32_t>& tokens);
  int32_t next_token(const std::vector<int32_t>& tokens, const SamplingOptions& options,
                     int64_t position);
  DType dtype() const { return spec::dtype_of(config_.training.precision); }

  WeightsPath path_;
  spec::RunConfig config_;
  std::shared_ptr<const data::Tokenizer> tokenizer_;
  comm::Communicator& world_;
  core::MemoryLedger ledger_;
  account::ParameterTable table_;
  std::unique_ptr<parallel::ModelState> state_;
  core::Arena arena_{ledger_, core::Category::activations, 0};
  std::unique_ptr<parallel::MeshGroups> groups_;
  model::DenseFactory dense_;
  std::unique_ptr<model::LayerFactory> tensor_;  ///< where tensor parallelism cuts layers
  std::unique_ptr<model::LoraFactory> factory_;
  model::UnitHooks hooks_;
  std::unique_ptr<model::Transformer> stage_;
};

/// Logits [V] after the tokens, of which as many as the positions reach are seen: on rank 0. The
/// stream goes from stage to stage, and the logits from the last one back to rank 0.
std::vector<float> Generator::Impl::next_logits(const std::vector<int32_t>& tokens) {
  const auto window =
      std::min<int64_t>(static_cast<int64_t>(tokens.size()), spec::longest_sequence(config_.model));
  const core::Shape shape{1, window};
  const core::Shape stream{1, window, config_.model.hidden_size};
  const int64_t sample = 0;
  const auto last = static_cast<int32_t>(window - 1);
  comm::Communicator& pipeline = groups_->pp_forward();
  const int rank = pipeline.rank();
  const core::Arena::Scope scope(arena_);
  model::Pass pass{arena_, {}};
  pass.training = false;
  pass.batch.inputs = ConstView{tokens.data() + tokens.size() - window, DType::i32, shape};
  pass.batch.samples = ConstView{&sample, DType::i64, {1}};
  View input;
  if (rank > 0) {
    input = arena_.allocate(dtype(), stream);
    pipeline.recv(input, rank - 1);
  }
  std::vector<float> logits(static_cast<size_t>(config_.model.vocab_size));
  const View out{logits.data(), DType::f32, {1, config_.model.vocab_size}};
  if (rank + 1 < pipeline.size()) {
    model::Activations activations;
    stage_->forward(pass, activations, input);
    pipeline.send(activations.output, rank + 1);
    if (world_.rank() == 0) pipeline.recv(out, pipeline.size() - 1);
    return logits;
  }
  stage_->logits(pass, input, ConstView{&last, DType::i32, {1}}, out);
  if (rank > 0 && groups_->coordinate().tp == 0) pipeline.send(out, 0);
  return logits;
}

/// What rank 0 draws, on every rank.
int32_t Generator::Impl::next_token(const std::vector<int32_t>& tokens,
                                    const SamplingOptions& options, int64_t position) {
  std::vector<float> logits = next_logits(tokens);
  int32_t token = 0;
  agree(world_, [&] {
    if (world_.rank() != 0) return;
    logits.resize(std::min(logits.size(), static_cast<size_t>(tokenizer_->vocab_size())));
    token = sample_token(std::move(logits), options, position);
  });
  world_.broadcast(View{&token, DType::i32, {1}}, 0);
  return token;
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
    const int32_t token = next_token(tokens, options, i);
    if (token == tokenizer_->separator()) break;
    tokens.push_back(token);
    const std::string piece = tokenizer_->decode({&token, 1});
    text += piece;
    if (on_text && world_.rank() == 0) on_text(piece);
  }
  return text;
}

Generator::Generator(const fs::path& path, const std::string& tokenizer)
    : alone_(comm::make_self_communicator()),
      impl_(std::make_unique<Impl>(path, tokenizer, *alone_, 1, 1)) {
  impl_->connect();
}

Generator::Generator(const fs::path& path, const std::string& tokenizer, comm::Communicator& world,
                     int64_t tp, int64_t pp) {
  agree(world, [&] { impl_ = std::make_unique<Impl>(path, tokenizer, world, tp, pp); });
  impl_->connect();
}

Generator::~Generator() = default;

std::string Generator::generate(const std::string& prompt, const SamplingOptions& options,
                                const std::function<void(const std::string&)>& on_text) {
  return impl_->generate(prompt, options, on_text);
}

}  // namespace tessera::train
