#include "account/model_part.h"

#include <algorithm>

#include "account/head_chunks.h"
#include "core/error.h"
#include "spec/mesh.h"
#include "spec/schedule.h"

namespace tessera::account {

namespace {

/// How the ranks of tensor parallelism share a parameter.
enum class Cut : uint8_t { none, rows, columns, key_value_rows, vocabulary_rows };

Cut cut_of(Role role) {
  switch (role) {
    case Role::token_embedding:
    case Role::head_weight:
      return Cut::vocabulary_rows;
    case Role::q_weight:
    case Role::q_bias:
    case Role::q_lora_b:
    case Role::gate_weight:
    case Role::gate_bias:
    case Role::gate_lora_b:
    case Role::up_weight:
    case Role::up_bias:
    case Role::up_lora_b:
      return Cut::rows;
    case Role::k_weight:
    case Role::k_bias:
    case Role::k_lora_b:
    case Role::v_weight:
    case Role::v_bias:
    case Role::v_lora_b:
      return Cut::key_value_rows;
    case Role::o_weight:
    case Role::o_lora_a:
    case Role::down_weight:
    case Role::down_lora_a:
      return Cut::columns;
    case Role::position_embedding:
    case Role::input_norm_weight:
    case Role::input_norm_bias:
    case Role::q_norm_weight:
    case Role::k_norm_weight:
    case Role::o_bias:
    case Role::post_attention_norm_weight:
    case Role::post_attention_norm_bias:
    case Role::down_bias:
    case Role::final_norm_weight:
    case Role::final_norm_bias:
    case Role::q_lora_a:
    case Role::k_lora_a:
    case Role::v_lora_a:
    case Role::o_lora_b:
    case Role::gate_lora_a:
    case Role::up_lora_a:
    case Role::down_lora_b:
      break;
  }
  return Cut::none;
}

/// Whether what is whole is fed with this rank's heads or positions alone, so that each rank's
/// gradient is a summand: the norms of heads, and with sequence parallelism what works on the
/// stream's own rows. (Biases behind a row product and positions see the gradient of all rows.)
bool sees_a_part(Role role, bool sequence_parallel) {
  switch (role) {
    case Role::q_norm_weight:
    case Role::k_norm_weight:
      return true;
    case Role::o_bias:
    case Role::down_bias:
    case Role::position_embedding:
      return false;
    default:
      return sequence_parallel;
  }
}

/// `shape` with that many in one dimension.
core::Shape with(core::Shape shape, int dim, int64_t size) {
  if (shape.dims() == 1) return {size};
  return dim == 0 ? core::Shape{size, shape[1]} : core::Shape{shape[0], size};
}

class Cutter {
 public:
  Cutter(const spec::ModelConfig& config, const ModelPart& part)
      : part_(part), kv_heads_(config.num_key_value_heads) {
    const int64_t tp = part.tp;
    const bool even = config.num_attention_heads % tp == 0 && config.intermediate_size % tp == 0 &&
                      (kv_heads_ % tp == 0 || tp % kv_heads_ == 0);
    CHECK(even, "a tensor-parallel degree that does not divide the model");
  }

  /// Makes of a whole parameter this rank's part.
  void cut(Parameter& parameter) const {
    if (part_.tp == 1) return;
    switch (cut_of(parameter.role)) {
      case Cut::none:
        parameter.copies = part_.tp;
        parameter.partial_gradient = sees_a_part(parameter.role, part_.sequence_parallel);
        break;
      case Cut::rows:
        take(parameter, 0, parameter.whole[0] / part_.tp, part_.tp_rank);
        break;
      case Cut::columns:
        take(parameter, 1, parameter.whole[1] / part_.tp, part_.tp_rank);
        break;
      case Cut::key_value_rows: {
        parameter.copies = std::max<int64_t>(1, part_.tp / kv_heads_);
        parameter.partial_gradient = parameter.copies > 1;
        const int64_t parts = part_.tp / parameter.copies;
        take(parameter, 0, parameter.whole[0] / parts, part_.tp_rank / parameter.copies);
        break;
      }
      case Cut::vocabulary_rows: {
        const int64_t rows = vocabulary_rows(parameter.whole[0], part_.tp);
        take(parameter, 0, rows, part_.tp_rank);
        const int64_t beyond = parameter.begin + rows - parameter.whole[0];
        parameter.padding = std::clamp<int64_t>(beyond, 0, rows);
        break;
      }
    }
    parameter.counted = part_.tp_rank % parameter.copies == 0;
  }

 private:
  static void take(Parameter& parameter, int dim, int64_t size, int64_t number) {
    parameter.shape = with(parameter.whole, dim, size);
    parameter.cut = dim;
    parameter.begin = number * size;
  }

  const ModelPart& part_;
  int64_t kv_heads_;
};

/// Puts units of a model's table into the table of a part.
class PartWriter {
 public:
  PartWriter(const ParameterTable& whole, Cutter cutter) : whole_(whole), cutter_(cutter) {}

  void add(size_t number, int chunk, bool tied_copy = false) {
    const Unit& from = whole_.units[number];
    Unit unit = from;
    unit.chunk = chunk;
    unit.tied_copy = tied_copy;
    unit.first = static_cast<int>(table_.parameters.size());
    unit.elements = 0;
    unit.trainable_begin = 0;
    for (int i = from.first; i < from.first + from.count; ++i) {
      Parameter parameter = whole_.parameters[static_cast<size_t>(i)];
      cutter_.cut(parameter);
      if (tied_copy) parameter.counted = false;
      parameter.unit = static_cast<int>(table_.units.size());
      parameter.offset = unit.elements;
      unit.elements += parameter.elements();
      if (!parameter.trainable) unit.trainable_begin = unit.elements;  // these come first
      table_.parameters.push_back(std::move(parameter));
    }
    table_.units.push_back(std::move(unit));
  }

  ParameterTable take() { return std::move(table_); }

 private:
  const ParameterTable& whole_;
  Cutter cutter_;
  ParameterTable table_;
};

}  // namespace

ModelPart part_of(const spec::RunConfig& config, int64_t rank) {
  const spec::Mesh mesh = spec::mesh_of(config.parallelism);
  const spec::Coordinate at = mesh.at(rank);
  ModelPart part;
  part.tp = mesh.tp;
  part.tp_rank = at.tp;
  part.sequence_parallel = config.parallelism.sequence_parallel;
  const std::vector<int64_t> rank_of_stage = spec::rank_of_stage(config);
  const std::vector<spec::StageLayers> layers = spec::stage_layers(config);
  CHECK(layers.size() == rank_of_stage.size(), "stages without a rank");
  for (size_t stage = 0; stage < layers.size(); ++stage) {
    if (rank_of_stage[stage] != at.pp) continue;
    part.stages.push_back(
        {static_cast<int64_t>(stage), layers[stage], stage == 0, stage + 1 == layers.size()});
  }
  return part;
}

ParameterTable parameter_table(const spec::ModelConfig& given, const spec::LoraConfig& lora,
                               const ModelPart& part) {
  const spec::ModelConfig config = spec::resolved(given);
  const ParameterTable whole = parameter_table(config, lora);
  PartWriter writer(whole, Cutter(config, part));
  const size_t head = whole.units.size() - 1;
  bool embeds = false;
  int head_chunk = -1;
  for (size_t i = 0; i < part.stages.size(); ++i) {
    const StagePart& stage = part.stages[i];
    const int chunk = static_cast<int>(i);
    if (stage.embeds) writer.add(0, chunk);
    for (int64_t layer = 0; layer < stage.layers.num_layers; ++layer) {
      writer.add(static_cast<size_t>(1 + stage.layers.first_layer + layer), chunk);
    }
    if (stage.has_head) writer.add(head, chunk);
    embeds = embeds || stage.embeds;
    if (stage.has_head) head_chunk = chunk;
  }
  const bool reads_elsewhere = config.tie_word_embeddings && head_chunk >= 0 && !embeds;
  if (reads_elsewhere) writer.add(0, head_chunk, /*tied_copy=*/true);
  return writer.take();
}

}  // namespace tessera::account
