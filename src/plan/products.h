#pragma once

// Seconds of the operations of a layer on one device, from their shapes: matrix products by tiles
// and waves, attention, and operations that only move bytes.

#include <cstdint>

#include "plan/constants.h"
#include "plan/estimate.h"

namespace tessera::plan {

/// Rows × depth times depth × columns, so many times.
struct Product {
  double rows = 0, columns = 0, depth = 0;
  double count = 1;  ///< of a batch that is started as one
};

/// Attention of one micro-batch in one layer.
struct AttentionShape {
  double sequences = 0;
  double queries = 0;  ///< tokens of a sequence on this device
  double keys = 0;     ///< that they look at, without a mask
  double at_once = 0;  ///< of those, in one kernel: context parallelism takes them in pieces
  double heads = 0;    ///< on this device
  double head_dim = 0;
};

class Kernels {
 public:
  Kernels(const Case& run, const Constants& constants);

  /// A product in the recipe's format. It is cut into tiles that the device's units take wave by
  /// wave; a last wave that is not full is lost in part, as is the start of every tile along the
  /// depth; widths that do not divide by 64 waste part of a tile. A product with little to compute
  /// takes as long as its operands need from memory.
  double product_s(const Product& product) const;
  /// The same in bf16, whatever the recipe: attention's products.
  double product_bf16_s(const Product& product) const;
  /// `bytes` read and written in one pass.
  double memory_s(double bytes) const;

  struct Times {
    double forward = 0, backward = 0;
  };
  /// Fused (Dao et al. 2022), whose backward computes the scores again; or with all scores in
  /// memory.
  Times attention_s(const AttentionShape& shape) const;

  const Case& run;
  const Constants& constants;
  const FamilyConstants& family;

 private:
  double product_at(const Product& product, double peak) const;
};

}  // namespace tessera::plan
