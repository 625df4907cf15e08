#include "parallel/tensor_model.h"

#include <cstring>
#include <exception>
#include <mutex>
#include <thread>

#include "core/rng.h"
#include "kernels/device.h"

namespace tessera::parallel::testing {

using core::View;

namespace {

constexpr float kScale = 1.0f / 16;

account::ModelPart part_of(const spec::ModelConfig& config, const Cut& cut, int64_t rank) {
  account::ModelPart part;
  part.tp = cut.ranks;
  part.tp_rank = rank;
  part.sequence_parallel = cut.sequence_parallel;
  part.stages = {{0, {0, config.num_hidden_layers}, true, true}};
  return part;
}

core::DType gradient_dtype(const Setting& setting) {
  if (setting.invariant) return core::DType::i64;
  return setting.dtype == core::DType::f64 ? core::DType::f64 : core::DType::f32;
}

/// Noise for element `i` of a whole parameter; large enough that every part matters.
double value_of(const account::Parameter& parameter, int64_t i) {
  uint64_t key = 0;
  for (const char letter : parameter.name) key = key * 131 + static_cast<uint64_t>(letter);
  const auto draws = core::philox(key, static_cast<uint64_t>(i), 0);
  const double noise = core::to_normal(draws[0], draws[1]);
  return parameter.init == account::Init::ones ? 1 + 0.2 * noise : 0.3 * noise;
}

}  // namespace

PartModel::PartModel(const Setting& setting, const Cut& cut, comm::Communicator& group)
    : table(account::parameter_table(setting.config, setting.lora,
                                     part_of(setting.config, cut, group.rank()))),
      setting_(setting),
      cut_(cut),
      rank_(group.rank()),
      tensor_(group),
      arena_(ledger, core::Category::activations, int64_t{1} << 20),
      scratch_(ledger, core::Category::activations, int64_t{1} << 18),
      parameters_(table) {
  for (const account::Unit& unit : table.units) {
    const int index = static_cast<int>(weights_.size());
    weights_.emplace_back(ledger, core::Category::weights, setting.dtype,
                          core::Shape{unit.elements});
    gradients_.emplace_back(ledger, core::Category::gradients, gradient_dtype(setting),
                            core::Shape{unit.trainable_elements()});
    const View all = weights_.back().view();
    std::memset(gradients_.back().view().data, 0,
                static_cast<size_t>(gradients_.back().view().bytes()));
    parameters_.bind_weights(index, all.slice(0, {unit.frozen_elements()}),
                             all.slice(unit.frozen_elements(), {unit.trainable_elements()}));
    parameters_.bind_gradients(index, gradients_.back().view());
  }
  for (const account::Parameter& parameter : table.parameters) {
    std::vector<double> values(static_cast<size_t>(parameter.elements()));
    account::for_each_run(
        parameter, 0, parameter.elements(), [&](int64_t whole, int64_t part, int64_t count) {
          for (int64_t i = 0; i < count; ++i) {
            values[static_cast<size_t>(part + i)] = value_of(parameter, whole + i);
          }
        });
    model::testing::from_doubles(parameters_.get(parameter).value, values);
  }
  model::TransformerOptions options;
  options.dtype = setting.dtype;
  options.recompute = setting.recompute;
  const model::LayerFactory& base =
      cut.ranks == 1 ? static_cast<const model::LayerFactory&>(dense_) : tensor_;
  lora_ = std::make_unique<model::LoraFactory>(base, 0.5);
  transformer_ =
      std::make_unique<model::Transformer>(setting.config, parameters_, *lora_, no_hooks_, options);
}

model::Pass PartModel::pass(const Tokens& tokens, bool training) {
  model::Pass made{arena_, setting_.one_arena ? arena_ : scratch_, tokens.view()};
  made.training = training;
  made.grad_scale = kScale;
  made.dropout_key = core::stream_key(7, core::Stream::dropout);
  made.step = 1;
  made.invariant = setting_.invariant;
  if (cut_.sequence_parallel) {
    made.stream_parts = cut_.ranks;
    made.stream_part = rank_;
  }
  return made;
}

model::LossResult PartModel::forward(const Tokens& tokens, bool training) {
  model::Pass made = pass(tokens, training);
  return transformer_->forward(made);
}

model::LossResult PartModel::train(const Tokens& tokens) {
  model::Pass made = pass(tokens, /*training=*/true);
  const model::LossResult result = transformer_->forward(made);
  transformer_->backward(made);
  CHECK(!made.gradient_beyond_range, "a test's gradient is too large");
  return result;
}

std::vector<float> PartModel::logits(const Tokens& tokens, const std::vector<int32_t>& positions) {
  model::Pass made = pass(tokens, /*training=*/false);
  made.stream_parts = 1;
  made.stream_part = 0;
  const int64_t vocab_size = setting_.config.vocab_size;
  std::vector<float> out(static_cast<size_t>(tokens.batch * vocab_size));
  transformer_->logits(made, {positions.data(), core::DType::i32, {tokens.batch}},
                       {out.data(), core::DType::f32, {tokens.batch, vocab_size}});
  return out;
}

std::vector<double> PartModel::gradient(const account::Parameter& parameter) const {
  const View view = parameters_.get(parameter).grad;
  if (!view) return {};
  if (view.dtype != core::DType::i64) return model::testing::to_doubles(view);
  const auto* sums = view.as<int64_t>();
  return {sums, sums + view.elements()};
}

void on_ranks(int ranks, const std::function<void(comm::Communicator&)>& body) {
  comm::CommOptions options;
  options.timeout = std::chrono::milliseconds{60000};
  auto group = comm::make_thread_communicators(ranks, options);
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (auto& communicator : group) {
    threads.emplace_back([&] {
      kernels::set_num_threads(1);
      try {
        body(*communicator);
      } catch (const std::exception& error) {
        communicator->abort(error.what());
        const std::lock_guard lock(mutex);
        if (!first) first = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

namespace {

/// Adds the gradients of the ranks' parts of one parameter into the whole one.
class Assembly {
 public:
  Assembly(const account::Parameter& whole, std::string& mistakes)
      : mistakes_(mistakes), sum_(static_cast<size_t>(whole.elements())) {}

  void add(const account::Parameter& parameter, const std::vector<double>& gradient) {
    const auto at = [&](int64_t i) { return gradient[static_cast<size_t>(i)]; };
    int64_t real = 0;
    account::for_each_run(parameter, 0, parameter.elements(),
                          [&](int64_t whole, int64_t part, int64_t count) {
                            real += count;
                            for (int64_t i = 0; i < count; ++i) {
                              double& sum = sum_[static_cast<size_t>(whole + i)];
                              if (parameter.counted || parameter.partial_gradient) {
                                sum += at(part + i);
                              } else if (sum != at(part + i)) {
                                mistakes_ += parameter.name + " differs between its copies; ";
                                return;
                              }
                            }
                          });
    for (int64_t i = real; i < parameter.elements(); ++i) {
      if (at(i) != 0) mistakes_ += parameter.name + " has a gradient in its padding; ";
    }
  }

  std::vector<double> take() { return std::move(sum_); }

 private:
  std::string& mistakes_;
  std::vector<double> sum_;
};

}  // namespace

Outcome train_on(const Setting& setting, const Cut& cut, const Tokens& tokens, bool apart) {
  const auto ranks = static_cast<size_t>(cut.ranks);
  std::vector<std::unique_ptr<PartModel>> models(ranks);
  Outcome outcome;
  outcome.losses.resize(ranks);
  on_ranks(cut.ranks, [&](comm::Communicator& group) {
    const auto rank = static_cast<size_t>(group.rank());
    models[rank] = std::make_unique<PartModel>(setting, cut, group);
    for (int64_t first = 0; first < tokens.batch; first += apart ? 1 : tokens.batch) {
      const Tokens part = tokens.rows(first, apart ? 1 : tokens.batch);
      const model::LossResult loss = models[rank]->train(part);
      outcome.losses[rank].loss_sum += loss.loss_sum;
      outcome.losses[rank].valid_tokens += loss.valid_tokens;
    }
  });
  const account::ParameterTable whole = account::parameter_table(setting.config, setting.lora);
  for (const account::Parameter& parameter : whole.parameters) {
    Assembly assembly(parameter, outcome.mistakes);
    for (const auto& model : models) {
      const account::Parameter* part = model->table.find(parameter.name);
      if (part->trainable) assembly.add(*part, model->gradient(*part));
    }
    outcome.gradients.push_back(assembly.take());
  }
  return outcome;
}

}  // namespace tessera::parallel::testing
