// A run's config in TOML.

#include "driver.h"
#include "formats/config_io.h"

std::vector<std::string> tessera::fuzz::seeds() {
  spec::RunConfig config;
  config.data.path = {"a.txt", "b \"quoted\".jsonl"};
  std::vector<std::string> texts = {formats::to_toml(config)};
  config.model.architecture = spec::Architecture::llama;
  config.model.rope_scaling.rope_type = spec::RopeType::llama3;
  config.model.rope_scaling.factor = 8;
  config.metrics.tensorboard = true;
  texts.push_back(formats::to_toml(config));
  texts.emplace_back("model.preset = \"gpt2-124m\"\n[training]\nsteps = 1_000\n[optimizer]\nlr = 3e-4\n");
  texts.emplace_back("[optimizer]\nlr = inf\n[data]\npath = ['''x\ny''']\n[[a]]\nb = 1979-05-27\n");
  return texts;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const std::string text(reinterpret_cast<const char*>(data), size);
  spec::RunConfig config;
  if (fuzz::refused([&] { config = formats::parse_config(text, "run.toml"); })) return 0;
  formats::describe(spec::validate(config, 0));
  formats::describe(spec::validate(config, 3));
  const std::string written = formats::to_toml(config);
  const std::string again = formats::to_toml(formats::parse_config(written, "as written"));
  fuzz::expect(again == written, "it reads the same once written");
  return 0;
}

std::vector<std::string> tessera::fuzz::dictionary() {
  return {R"([training])",
          R"(steps = 1)",
          R"([[)",
          R"(""")",
          R"(''')",
          R"([)",
          R"(=)",
          R"(.)",
          R"(inf)",
          R"(-nan)",
          R"(0x)",
          R"(0b1)",
          R"(1979-05-27T07:32:00Z)",
          R"({a = 1})",
          R"(#)",
          R"(false)",
          R"(preset = "gpt2-124m")",
          R"([model.rope_scaling])",
          "\xC3\xA9",
          "\xFF",
          "\\u0000",
          "\\\n"};
}
