// The first byte of an input says which system the rest is of.

#include <algorithm>

#include "driver.h"
#include "formats/config_io.h"
#include "formats/import/entry.h"
#include "formats/import/import.h"

namespace {

using namespace tessera;

/// The entries of the input, read apart from the maps.
std::vector<formats::Entry> entries_of(formats::System system, const std::string& text) {
  switch (system) {
    case formats::System::deepspeed:
      return formats::read_json_entries(text, "x");
    case formats::System::accelerate:
      return formats::read_yaml_entries(text, "x");
    case formats::System::torchtitan:
      return formats::read_toml_entries(text, "x");
    case formats::System::megatron:
      break;
  }
  std::vector<formats::Entry> flags;
  for (const formats::ShellWord& word : formats::read_shell_words(text, "x")) {
    if (word.text.compare(0, 2, "--") != 0 || word.text.size() == 2) continue;
    formats::Entry entry;
    entry.source = word.text;
    flags.push_back(std::move(entry));
  }
  return flags;
}

void check_accounts(const formats::ImportResult& result, const std::string& text) {
  std::vector<std::string> sources;
  for (const auto& mapped : result.mapped) {
    sources.insert(sources.end(), mapped.sources.begin(), mapped.sources.end());
  }
  for (const auto& unmapped : result.unmapped) sources.push_back(unmapped.source);
  for (const formats::Entry& entry : entries_of(result.system, text)) {
    const bool found = std::any_of(sources.begin(), sources.end(), [&](const std::string& source) {
      return source.compare(0, entry.source.size(), entry.source) == 0;
    });
    fuzz::expect(found, "each key is in one of the lists");
  }
}

void check_toml(const formats::ImportResult& result) {
  const std::string toml = formats::to_toml(result);
  const spec::RunConfig config = formats::parse_config(toml, "the imported");
  for (const spec::Violation& violation : spec::validate(config, 0)) {
    fuzz::expect(violation.key == "data.path", "what is printed passes the validator");
  }
}

}  // namespace

std::vector<std::string> tessera::fuzz::seeds() {
  return {
      "0A=3\nARGS=(--num-layers $A --hidden-size 64 # no\n \"--swiglu --normalization RMSNorm\")\n"
      "run ${ARGS[@]} --position-embedding-type rope --lr 1e-3 --min-lr=1e-4 \\\n --split 9,1,0 "
      "--train-samples 640 --global-batch-size 64 --hidden-dropout 0.1 --data-path a b 2>&1 | tee "
      "x",
      "0A=\"--num-layers 2\"\nA=\"$A --seed ${S:-7}\"\nif [ \"$C\" ]; then E=${E:-\"--bf16 --x\"}; "
      "fi\nbash -c \"python x.py $A ${E} $(cat --f) `b` --use-rope-scaling --y\" >o",
      "1{\"train_batch_size\": 32, \"train_micro_batch_size_per_gpu\": 4, "
      "\"gradient_accumulation_steps\": 2, \"optimizer\": {\"type\": \"Adam\", \"params\": "
      "{\"lr\": 1e-3, \"betas\": [0.9, 0.95]}}, \"scheduler\": {\"type\": \"WarmupCosineLR\", "
      "\"params\": {\"total_num_steps\": 100, \"cos_min_ratio\": \"auto\"}}, \"bf16\": "
      "{\"enabled\": true}, \"zero_optimization\": {\"stage\": 3, \"mics_shard_size\": -1}}",
      "2distributed_type: FSDP\nmixed_precision: 'no'\nnum_processes: 4\nfsdp_config:\n"
      "  fsdp_sharding_strategy: HYBRID_SHARD\n  fsdp_version: 1\nparallelism_config: &p\n"
      "  parallelism_config_dp_shard_size: 2\nmegatron_lm_config: *p\ntpu_env: [a, b]\n",
      "3[model]\nname = \"llama3\"\nflavor = \"8B\"\n[lr_scheduler]\ndecay_ratio = "
      "0.2\n[training]\n"
      "seq_len = 8192\nsteps = 10\n[parallelism]\ndata_parallel_shard_degree = 4\n"
      "data_parallel_replicate_degree = 2\n[checkpoint]\nenable = false\ninterval = 5\n"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto system = static_cast<formats::System>(data[0] % 4);
  const std::string text(reinterpret_cast<const char*>(data) + 1, size - 1);
  formats::ImportResult result;
  if (fuzz::refused([&] { result = formats::import_config(system, text, "input"); })) return 0;
  check_accounts(result, text);
  check_toml(result);
  formats::to_json(result);
  formats::describe(result);
  return 0;
}

std::vector<std::string> tessera::fuzz::dictionary() {
  return {R"(--num-layers 2)",
          R"(--lr=)",
          R"($X)",
          R"(${X[@]})",
          R"(${X:-)",
          R"(X="$X --bf16 ")",
          R"($(a)",
          R"(`)",
          R"(X=()",
          R"())",
          R"(--data-path)",
          R"("auto")",
          R"(null)",
          R"({"a": )",
          R"("train_batch_size": 3)",
          R"("optimizer.params.betas": [1])",
          R"(&a)",
          R"(*a)",
          R"(- )",
          R"(? )",
          R"(fsdp_config:)",
          R"(parallelism_config_dp_shard_size: -1)",
          R"([training])",
          R"(steps = 1)",
          R"(local_batch_size = 2)",
          R"(true)",
          R"(1e999)",
          R"(-1)",
          R"(0)",
          R"(#)",
          "\\\n",
          "\xFF",
          "\n  "};
}
