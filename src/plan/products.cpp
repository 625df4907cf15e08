#include "plan/products.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "plan/parts.h"

namespace tessera::plan {

namespace {

/// A tile of the output that one unit makes, and what share of the peak one of that size can reach:
/// smaller ones read their operands more often.
struct Tile {
  double rows, columns, efficiency;
};
constexpr std::array<Tile, 4> kTiles = {Tile{256, 128, 1.0}, Tile{128, 256, 1.0},
                                        Tile{128, 128, 0.93}, Tile{128, 64, 0.75}};

/// Whether tensor cores can take a row of that many elements whole.
bool divides(double width, int64_t by) {
  return std::fmod(width, static_cast<double>(by)) == 0;
}

}  // namespace

Kernels::Kernels(const Case& a_case, const Constants& all)
    : run(a_case),
      constants(all),
      family(all.family[static_cast<size_t>(a_case.cluster.device.family)]) {}

double Kernels::memory_s(double bytes) const {
  return bytes / (run.cluster.device.memory_bytes_per_s * family.memory);
}

double Kernels::product_at(const Product& product, double peak) const {
  if (product.rows <= 0 || product.columns <= 0 || product.depth <= 0) return 0;
  const auto units = static_cast<double>(run.cluster.device.units);
  double best = 0;
  for (const Tile& tile : kTiles) {
    const double tiles = std::ceil(product.rows / tile.rows) *
                         std::ceil(product.columns / tile.columns) * product.count;
    const double waves = tiles / units;
    const double idle = 1 - waves / std::ceil(waves);
    const double useful =
        product.rows * product.columns * product.count / (tiles * tile.rows * tile.columns);
    best = std::max(best, tile.efficiency * useful * (1 - family.wave_loss * idle));
  }
  const double flops = 2 * product.rows * product.columns * product.depth * product.count;
  double rate = peak * best * product.depth / (product.depth + family.half_depth);
  double slower = 1;
  // A row of an operand is a row of the output or of the depth.
  for (const double width : {product.columns, product.depth}) {
    if (!divides(width, 64)) slower += constants.misaligned * (divides(width, 8) ? 0.5 : 1);
  }
  const double bytes = stream_bytes(run.recipe) * product.count *
                       (product.rows * product.depth + product.depth * product.columns +
                        product.rows * product.columns);
  return std::max(flops / rate * slower, memory_s(bytes)) + constants.launch_s;
}

double Kernels::product_s(const Product& product) const {
  const Device& device = run.cluster.device;
  const Format format = run.recipe.format;
  const bool narrow = (format == Format::fp8 || format == Format::fp4) && device.fp8_flops > 0;
  const double efficiency = narrow ? family.fp8_products : family.products;
  return product_at(product, device.peak(format) * efficiency);
}

double Kernels::product_bf16_s(const Product& product) const {
  const Format format = run.recipe.format == Format::fp32 ? Format::fp32 : Format::bf16;
  return product_at(product, run.cluster.device.peak(format) * family.products);
}

Kernels::Times Kernels::attention_s(const AttentionShape& shape) const {
  const double scores = shape.sequences * shape.heads * shape.queries * shape.keys;
  const bool odd = !divides(shape.head_dim, 8);
  if (run.stack.flash_attention) {
    const double mask = run.stack.causal_skips ? 0.5 : 1;
    const double flops = 4 * scores * shape.head_dim * mask;
    // Short sequences and narrow heads leave the units waiting for the exponentials.
    const double reached = family.attention * shape.at_once / (shape.at_once + 512) *
                           std::min(1.0, std::sqrt(shape.head_dim / 128)) /
                           (odd ? 1 + constants.odd_head : 1) *
                           (run.stack.first_generation ? constants.first_fused : 1);
    const double rate = run.cluster.device.peak(Format::bf16) * reached;
    return {flops / rate, 2.5 * flops / rate};
  }
  const double batch = shape.sequences * shape.heads;
  const double products = product_bf16_s({shape.queries, shape.keys, shape.head_dim, batch}) +
                          product_bf16_s({shape.queries, shape.head_dim, shape.keys, batch});
  // Scores written; softmax reads and writes them; dropout reads, writes, and writes its mask;
  // read for P V. Backward: the gradient of P written, masked, through softmax, read twice.
  const bool dropout = run.recipe.dropout > 0;
  const double forward_bytes = dropout ? 13 : 8, backward_bytes = dropout ? 19 : 12;
  const double slower = odd ? 1 + constants.odd_head : 1;
  return {products * slower + memory_s(forward_bytes * scores),
          2 * products * slower + memory_s(backward_bytes * scores)};
}

}  // namespace tessera::plan
