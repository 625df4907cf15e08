// The GPT-2 model files of llm.c (github.com/karpathy/llm.c, train_gpt2.py and train_gpt2.cu): 256
// int32 of header, then every kind of parameter for all layers together, products [out, in], the
// token embedding padded to rows that nobody reads.

#include <fmt/format.h>

#include <cstring>
#include <fstream>

#include "core/error.h"
#include "core/file.h"
#include "formats/foreign_weights.h"
#include "spec/run_config.h"

namespace tessera::formats {
namespace {

using account::Role;

constexpr int32_t kMagic = 20240326;
constexpr int32_t kVersionFp32 = 3;
constexpr int32_t kVersionBf16 = 5;
constexpr size_t kHeaderWords = 256;
constexpr size_t kHeaderBytes = 4 * kHeaderWords;

enum Word : size_t { kMagicWord, kVersion, kPositions, kVocab, kLayers, kHeads, kWidth, kPadded };

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw core::ConfigError(fmt::format("{}: not a GPT-2 model file of llm.c: {}", path, why));
}

struct Header {
  int32_t words[kHeaderWords];
  int64_t operator[](Word word) const { return words[word]; }
};

Header read_header(const std::string& path, std::string_view bytes) {
  if (bytes.size() < kHeaderBytes) {
    refuse(path, fmt::format("it is too short for the header: {} bytes", bytes.size()));
  }
  Header header;
  std::memcpy(header.words, bytes.data(), kHeaderBytes);
  if (header[kMagicWord] != kMagic) {
    refuse(path, fmt::format("it begins with {} where {} is expected", header[kMagicWord], kMagic));
  }
  const int64_t version = header[kVersion];
  if (version != kVersionFp32 && version != kVersionBf16) {
    refuse(path, fmt::format("it has version {}; 3 (fp32) and 5 (bf16) are read. llm.c's own "
                             "train_gpt2.py writes them anew",
                             version));
  }
  return header;
}

/// The model of the header, judged by the validator.
spec::ModelConfig model_of(const std::string& path, const Header& header) {
  spec::RunConfig run;
  run.model = spec::family_defaults(spec::Architecture::gpt2);
  run.model.max_position_embeddings = header[kPositions];
  run.model.vocab_size = header[kVocab];
  run.model.num_hidden_layers = header[kLayers];
  run.model.num_attention_heads = header[kHeads];
  run.model.hidden_size = header[kWidth];
  std::string problems;
  if (header[kVocab] < 1) problems += "\n  the vocabulary has to be at least 1";
  if (header[kPadded] < header[kVocab]) {
    problems += fmt::format("\n  the padded vocabulary {} is smaller than the vocabulary {}",
                            header[kPadded], header[kVocab]);
  }
  for (const spec::Violation& violation : spec::validate(run, 0)) {
    if (violation.key.rfind("model.", 0) != 0) continue;
    problems += fmt::format("\n  {} = {}: {}", violation.key, violation.value, violation.why);
  }
  if (!problems.empty()) refuse(path, "its header cannot be right:" + problems);
  return spec::resolved(run.model);
}

/// Hands out the file's elements in its order.
class Cursor {
 public:
  Cursor(const account::ParameterTable& table, ForeignWeights& weights, const char* data,
         WeightType type)
      : table_(table), weights_(weights), data_(data), type_(type) {}

  /// The parameters of these roles in one unit.
  void take(int unit, std::initializer_list<Role> roles) {
    for (const Role role : roles) {
      const account::Parameter* parameter = table_.find(unit, role);
      CHECK(parameter != nullptr, "GPT-2 has every role of the file");
      weights_.blocks[parameter->name] = {data_ + elements_ * size_of(type_), type_,
                                          parameter->shape.last(), 1};
      elements_ += parameter->elements();
    }
  }
  /// The same in every block, one after the other.
  void take_of_blocks(std::initializer_list<Role> roles) {
    const auto head = static_cast<int>(table_.units.size()) - 1;
    for (int unit = 1; unit < head; ++unit) take(unit, roles);
  }
  void skip(int64_t elements) { elements_ += elements; }
  int64_t elements() const { return elements_; }

 private:
  const account::ParameterTable& table_;
  ForeignWeights& weights_;
  const char* data_;
  WeightType type_;
  int64_t elements_ = 0;
};

void take_all(Cursor& file, const account::ParameterTable& table, int64_t padding) {
  const auto head = static_cast<int>(table.units.size()) - 1;
  file.take(0, {Role::token_embedding});
  file.skip(padding);
  file.take(0, {Role::position_embedding});
  file.take_of_blocks({Role::input_norm_weight});
  file.take_of_blocks({Role::input_norm_bias});
  file.take_of_blocks({Role::q_weight, Role::k_weight, Role::v_weight});
  file.take_of_blocks({Role::q_bias, Role::k_bias, Role::v_bias});
  file.take_of_blocks({Role::o_weight});
  file.take_of_blocks({Role::o_bias});
  file.take_of_blocks({Role::post_attention_norm_weight});
  file.take_of_blocks({Role::post_attention_norm_bias});
  file.take_of_blocks({Role::up_weight});
  file.take_of_blocks({Role::up_bias});
  file.take_of_blocks({Role::down_weight});
  file.take_of_blocks({Role::down_bias});
  file.take(head, {Role::final_norm_weight, Role::final_norm_bias});
}

}  // namespace

bool is_llmc_model(const std::string& path) {
  int32_t magic = 0;
  std::ifstream file(path, std::ios::binary);
  return file.read(reinterpret_cast<char*>(&magic), sizeof magic) && magic == kMagic;
}

ForeignWeights open_llmc_weights(const std::string& path) {
  auto file = std::make_shared<core::MappedFile>(path);
  const Header header = read_header(path, file->bytes());
  ForeignWeights weights;
  weights.model = model_of(path, header);
  const bool wide = header[kVersion] == kVersionFp32;
  const WeightType type = wide ? WeightType::f32 : WeightType::bf16;
  weights.dtype = wide ? core::DType::f32 : core::DType::bf16;
  const account::ParameterTable table = account::parameter_table(weights.model);
  Cursor cursor(table, weights, file->bytes().data() + kHeaderBytes, type);
  take_all(cursor, table, (header[kPadded] - header[kVocab]) * header[kWidth]);
  const int64_t expected = static_cast<int64_t>(kHeaderBytes) + cursor.elements() * size_of(type);
  const auto bytes = static_cast<int64_t>(file->bytes().size());
  if (bytes != expected) {
    refuse(path, fmt::format("it has {} bytes, and its header asks for {}: {}", bytes, expected,
                             bytes < expected ? "it was cut" : "something follows the weights"));
  }
  weights.files = std::move(file);
  return weights;
}

}  // namespace tessera::formats
