#include "model/tiny_model.h"

#include <algorithm>
#include <cmath>

namespace tessera::model::testing {

namespace {

/// An integer below `below` from a pattern of (seed, index).
int32_t draw(uint64_t seed, int64_t index, int64_t below) {
  return static_cast<int32_t>(core::philox(seed, static_cast<uint64_t>(index), 0)[0] %
                              static_cast<uint32_t>(below));
}

core::DType gradient_dtype(core::DType dtype) {
  return dtype == core::DType::f64 ? core::DType::f64 : core::DType::f32;
}

}  // namespace

std::vector<double> to_doubles(ConstView view) {
  std::vector<double> out(static_cast<size_t>(view.elements()));
  for (size_t i = 0; i < out.size(); ++i) {
    switch (view.dtype) {
      case core::DType::f64:
        out[i] = view.as<double>()[i];
        break;
      case core::DType::f32:
        out[i] = view.as<float>()[i];
        break;
      default:
        out[i] = static_cast<float>(view.as<core::bf16>()[i]);
        break;
    }
  }
  return out;
}

void from_doubles(View view, const std::vector<double>& values) {
  CHECK(view.elements() == static_cast<int64_t>(values.size()));
  for (size_t i = 0; i < values.size(); ++i) {
    switch (view.dtype) {
      case core::DType::f64:
        view.as<double>()[i] = values[i];
        break;
      case core::DType::f32:
        view.as<float>()[i] = static_cast<float>(values[i]);
        break;
      default:
        view.as<core::bf16>()[i] = core::bf16(static_cast<float>(values[i]));
        break;
    }
  }
}

spec::ModelConfig tiny_config() {
  spec::ModelConfig config;
  config.hidden_size = 16;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.vocab_size = 19;
  config.max_position_embeddings = 12;
  return spec::resolved(config);
}

spec::ModelConfig tiny_llama() {
  spec::ModelConfig config = spec::family_defaults(spec::Architecture::llama);
  config.hidden_size = 16;
  config.intermediate_size = 20;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 6;
  config.vocab_size = 19;
  config.max_position_embeddings = 12;
  return spec::resolved(config);
}

std::vector<NamedConfig> tiny_configs() {
  spec::ModelConfig biased = tiny_llama();
  biased.tie_word_embeddings = true;
  biased.attention_bias = spec::AttentionBias::all;
  biased.mlp_bias = true;
  spec::ModelConfig like_qwen2 = tiny_llama();
  like_qwen2.attention_bias = spec::AttentionBias::qkv;
  like_qwen2.rope_scaling.rope_type = spec::RopeType::yarn;
  like_qwen2.rope_scaling.factor = 4;
  like_qwen2.rope_scaling.original_max_position_embeddings = 8;
  spec::ModelConfig like_qwen3 = tiny_llama();
  like_qwen3.qk_norm = true;
  return {{"gpt2", tiny_config()},
          {"llama", tiny_llama()},
          {"llama with biases, tied", biased},
          {"llama like Qwen2, with YaRN", like_qwen2},
          {"llama like Qwen3", like_qwen3}};
}

Tokens::Tokens(int64_t batch_size, int64_t length, int64_t vocab_size, uint64_t seed,
               int64_t first_sample)
    : batch(batch_size), seq_len(length) {
  for (int64_t b = 0; b < batch; ++b) {
    samples.push_back(first_sample + b);
    int32_t start = 0;
    for (int64_t t = 0; t < seq_len; ++t) {
      const int64_t index = b * seq_len + t;
      inputs.push_back(draw(seed, index, vocab_size));
      const bool counts = t < seq_len - b && draw(seed + 1, index, 5) != 0;
      labels.push_back(counts ? draw(seed + 2, index, vocab_size) : -1);
      if (draw(seed + 3, index, 4) == 0) start = static_cast<int32_t>(t);
      doc_start.push_back(start);
    }
  }
}

MicroBatch Tokens::view() const {
  const core::Shape shape{batch, seq_len};
  MicroBatch micro;
  micro.inputs = {inputs.data(), core::DType::i32, shape};
  micro.labels = {labels.data(), core::DType::i32, shape};
  if (!doc_start.empty()) micro.doc_start = {doc_start.data(), core::DType::i32, shape};
  micro.samples = {samples.data(), core::DType::i64, {batch}};
  return micro;
}

Tokens Tokens::rows(int64_t first, int64_t count) const {
  Tokens part;
  part.batch = count;
  part.seq_len = seq_len;
  const auto cut = [&](const std::vector<int32_t>& from) {
    if (from.empty()) return from;
    return std::vector<int32_t>(from.begin() + first * seq_len,
                                from.begin() + (first + count) * seq_len);
  };
  part.inputs = cut(inputs);
  part.labels = cut(labels);
  part.doc_start = cut(doc_start);
  part.samples.assign(samples.begin() + first, samples.begin() + first + count);
  return part;
}

int64_t Tokens::valid() const {
  return std::count_if(labels.begin(), labels.end(), [](int32_t id) { return id != -1; });
}

TinyModel::TinyModel(const spec::ModelConfig& model_config, core::DType dtype,
                     spec::Recompute recompute, UnitHooks* hooks, uint64_t seed)
    : config(model_config),
      table(account::parameter_table(model_config)),
      arena(ledger, core::Category::activations, int64_t{1} << 20),
      parameters_(table) {
  for (const account::Unit& unit : table.units) {
    weights_.emplace_back(ledger, core::Category::weights, dtype, core::Shape{unit.elements});
    gradients_.emplace_back(ledger, core::Category::gradients, gradient_dtype(dtype),
                            core::Shape{unit.elements});
    const int index = static_cast<int>(weights_.size()) - 1;
    parameters_.bind_weights(index, {}, weights_.back().view());
    parameters_.bind_gradients(index, gradients_.back().view());
  }
  for (const account::Parameter& entry : table.parameters) {
    std::vector<double> values(static_cast<size_t>(entry.elements()));
    const auto place = static_cast<uint64_t>(&entry - table.parameters.data());
    for (size_t i = 0; i < values.size(); ++i) {
      const auto draws = core::philox(seed, i, place);
      const double noise = core::to_normal(draws[0], draws[1]);
      values[i] = entry.init == account::Init::ones ? 1 + 0.2 * noise : 0.3 * noise;
    }
    from_doubles(parameters_.get(entry).value, values);
  }
  TransformerOptions options;
  options.dtype = dtype;
  options.recompute = recompute;
  transformer_ = std::make_unique<Transformer>(config, parameters_, factory_,
                                               hooks == nullptr ? no_hooks_ : *hooks, options);
}

Pass TinyModel::pass(const Tokens& tokens, const PassOptions& options) {
  Pass made{arena, tokens.view()};
  made.training = options.training;
  made.grad_scale = options.grad_scale;
  made.dropout_key = core::stream_key(7, core::Stream::dropout);
  made.step = options.step;
  return made;
}

LossResult TinyModel::forward(const Tokens& tokens, const PassOptions& options) {
  Pass made = pass(tokens, options);
  return transformer_->forward(made);
}

LossResult TinyModel::train(const Tokens& tokens, const PassOptions& options) {
  Pass made = pass(tokens, options);
  const LossResult result = transformer_->forward(made);
  transformer_->backward(made);
  return result;
}

std::vector<float> TinyModel::logits(const Tokens& tokens, const std::vector<int32_t>& positions) {
  PassOptions options;
  options.training = false;
  Pass made = pass(tokens, options);
  std::vector<float> out(static_cast<size_t>(tokens.batch * config.vocab_size));
  transformer_->logits(made, {positions.data(), core::DType::i32, {tokens.batch}},
                       {out.data(), core::DType::f32, {tokens.batch, config.vocab_size}});
  return out;
}

void TinyModel::zero_gradients() {
  for (core::Tensor& unit : gradients_) {
    from_doubles(unit.view(), std::vector<double>(static_cast<size_t>(unit.view().elements())));
  }
}

std::vector<double> TinyModel::gradients() const {
  std::vector<double> all;
  for (const account::Parameter& entry : table.parameters) {
    const std::vector<double> one = to_doubles(parameters_.get(entry).grad);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

BoundParameter TinyModel::parameter(const std::string& name) const {
  const account::Parameter* entry = table.find(name);
  CHECK(entry != nullptr, name);
  return parameters_.get(*entry);
}

double relative_l2(const std::vector<double>& a, const std::vector<double>& b) {
  CHECK(a.size() == b.size());
  double difference = 0;
  double size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(size > 0 ? difference / size : difference);
}

}  // namespace tessera::model::testing
