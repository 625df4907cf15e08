#pragma once

// The seam through which tensor parallelism sees the model: blocks are built from the layers that a
// factory makes. The dense factory makes whole layers; a parallel one makes split layers of the
// same contract.

#include <memory>
#include <optional>

#include "model/layer.h"
#include "spec/model_config.h"

namespace tessera::model {

/// Which dimension of a product's weight [out, in] tensor parallelism may cut.
enum class Split : uint8_t {
  none,
  outputs,  ///< each rank makes a part of y from all of x: Q, K, V, gate, up
  inputs,   ///< each rank makes a summand of y from its part of x: o, down
};

/// A product of the model. `fused` neighbours in the parameter table, from `weight` and `bias` on,
/// are served by one product.
struct LinearSpec {
  int unit = 0;
  account::Role weight{};
  std::optional<account::Role> bias;  ///< may be absent from the table
  int fused = 1;
  Split split = Split::none;
};

/// layer: LayerNorm, with a bias; rms: RMSNorm, without.
enum class NormKind : uint8_t { layer, rms };

struct NormSpec {
  int unit = 0;
  account::Role weight{};
  account::Role bias{};  ///< not read by rms
  double eps = 1e-5;
  NormKind kind = NormKind::layer;
};

/// The kind of norm that a family uses.
constexpr NormKind norm_kind(spec::Architecture architecture) {
  return architecture == spec::Architecture::llama ? NormKind::rms : NormKind::layer;
}

/// The position embedding may be absent from the table.
struct EmbeddingSpec {
  int unit = 0;
};

/// The head's weight [V, C]: its own, or the token embedding where they are tied.
struct LossHeadSpec {
  int unit = 0;
  account::Role weight{};
};

/// Makes layers over parameters that outlive them.
class LayerFactory {
 public:
  virtual ~LayerFactory() = default;
  virtual std::unique_ptr<Linear> linear(const Parameters& parameters,
                                         const LinearSpec& spec) const = 0;
  virtual std::unique_ptr<Norm> norm(const Parameters& parameters, const NormSpec& spec) const = 0;
  virtual std::unique_ptr<Embedding> embedding(const Parameters& parameters,
                                               const EmbeddingSpec& spec) const = 0;
  virtual std::unique_ptr<LossHead> loss_head(const Parameters& parameters,
                                              const LossHeadSpec& spec) const = 0;
};

/// Whole layers on one rank.
class DenseFactory final : public LayerFactory {
 public:
  std::unique_ptr<Linear> linear(const Parameters& parameters,
                                 const LinearSpec& spec) const override;
  std::unique_ptr<Norm> norm(const Parameters& parameters, const NormSpec& spec) const override;
  std::unique_ptr<Embedding> embedding(const Parameters& parameters,
                                       const EmbeddingSpec& spec) const override;
  std::unique_ptr<LossHead> loss_head(const Parameters& parameters,
                                      const LossHeadSpec& spec) const override;
};

}  // namespace tessera::model
