#pragma once

#include "kernels/dropout.h"
#include "model/pass.h"

namespace tessera::model {

/// Where the model drops elements out. A mask's place is layer · 4 + site; the embedding's layer
/// is 0.
enum class DropoutSite : uint32_t { embedding, attention, attention_output, mlp_output };

/// The key of one dropout of this pass; p is 0 outside training.
inline kernels::DropoutKey dropout_at(const Pass& pass, double p, int64_t layer, DropoutSite site) {
  return {pass.training ? static_cast<float>(p) : 0.0f, pass.dropout_key,
          static_cast<uint64_t>(pass.step),
          static_cast<uint32_t>(layer * 4) + static_cast<uint32_t>(site)};
}

/// y = dropout(x), both [B, T', C] of the residual stream, masked as within the whole of it; y may
/// be x. Nothing, where p is 0.
void drop_out(const Pass& pass, View y, ConstView x, const kernels::DropoutKey& key);
/// dx = the same mask on dy.
void drop_out_backward(const Pass& pass, View dx, ConstView dy, const kernels::DropoutKey& key);

}  // namespace tessera::model
