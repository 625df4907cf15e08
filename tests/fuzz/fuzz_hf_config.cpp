// Hugging Face's config.json.

#include "formats/hf_config.h"

#include "driver.h"

std::vector<std::string> tessera::fuzz::seeds() {
  return {
      R"({"model_type":"gpt2","vocab_size":50257,"n_positions":1024,"n_embd":768,"n_layer":12,)"
      R"("n_head":12,"n_inner":null,"activation_function":"gelu_new","layer_norm_epsilon":1e-5})",
      R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","vocab_size":128256,)"
      R"("hidden_size":2048,"intermediate_size":8192,"num_hidden_layers":16,)"
      R"("num_attention_heads":32,"num_key_value_heads":8,"head_dim":64,"rms_norm_eps":1e-05,)"
      R"("max_position_embeddings":131072,"rope_theta":500000.0,"hidden_act":"silu",)"
      R"("rope_scaling":{"rope_type":"llama3","factor":32.0,"low_freq_factor":1.0,)"
      R"("high_freq_factor":4.0,"original_max_position_embeddings":8192},)"
      R"("attention_bias":false,"mlp_bias":false,"tie_word_embeddings":true})",
      R"({"model_type":"qwen3","vocab_size":151936,"hidden_size":1024,"intermediate_size":3072,)"
      R"("num_hidden_layers":28,"num_attention_heads":16,"num_key_value_heads":8,"head_dim":128,)"
      R"("rms_norm_eps":1e-06,"max_position_embeddings":40960,"hidden_act":"silu",)"
      R"("rope_parameters":{"rope_type":"default","rope_theta":1000000},"dtype":"bfloat16"})"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  formats::HfConfig read;
  if (fuzz::refused([&] { read = formats::parse_hf_config(text, "config.json"); })) return 0;
  std::string written;
  if (fuzz::refused([&] { written = formats::hf_config_json(read.model, {}); })) return 0;
  const formats::HfConfig again = formats::parse_hf_config(written, "as written");
  fuzz::expect(again.model == read.model, "it reads the same once written");
  return 0;
}

std::vector<std::string> tessera::fuzz::dictionary() {
  return {R"("model_type": "llama")",
          R"("model_type": "gpt2")",
          R"("mistral")",
          R"("qwen2")",
          R"("rope_scaling": null)",
          R"("rope_parameters")",
          R"("type": "yarn")",
          R"("factor": 0)",
          R"("head_dim": null)",
          R"("sliding_window": 1)",
          R"("rope_theta": 1e-300)",
          R"("tie_word_embeddings": true)",
          R"(null)",
          R"([])",
          R"({})",
          R"(-1)",
          R"(0.5)",
          R"("gelu")"};
}
