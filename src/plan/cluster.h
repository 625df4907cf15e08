#pragma once

// The machines of a plan: a device with what its data sheet says, and a network of two levels.
// Rates here are peaks; how much of them is reached is in constants.h.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::plan {

/// Formats in which products are computed.
enum class Format : uint8_t { fp32, bf16, fp16, fp8, fp4 };
std::string_view name_of(Format format);

/// Devices that reach a like share of their data sheets.
enum class Family : uint8_t { volta, ampere, hopper, blackwell, cdna, tpu, host };
constexpr size_t kNumFamilies = 7;
std::string_view name_of(Family family);

/// One accelerator, or one host as a device.
struct Device {
  std::string name;
  double fp32_flops = 0;  ///< peaks of dense products, FLOP/s; TF32 where the tensor cores have it
  double bf16_flops = 0;  ///< of bf16 and fp16
  double fp8_flops = 0;   ///< 0: it has none, products run in bf16
  double fp4_flops = 0;   ///< 0: it has none, products run in fp8
  int64_t memory_bytes = 0;
  double memory_bytes_per_s = 0;
  int64_t units = 108;  ///< streaming multiprocessors, compute units or cores: tiles done at once
  Family family = Family::ampere;  ///< whose constants it takes

  /// The format that products run in where `format` was asked for: the next wider one where the
  /// device has no rate of it. Volta has fp16 and no bf16.
  Format computed_in(Format format) const;
  /// Of products in computed_in(format), FLOP/s.
  double peak(Format format) const;
};

/// What one device sends at most in one direction, and what a message costs besides.
struct Link {
  double bytes_per_s = 0;
  double latency_s = 0;
};

struct Cluster {
  std::string name;
  Device device;
  int64_t devices_per_node = 8;  ///< joined by `intra`
  Link intra;
  Link inter;  ///< between nodes, the share of one device
  double usd_per_device_hour = 0;
  std::string source;  ///< where the figures are from
};

/// All figures with their sources; prices are a guess at a public list price.
const std::vector<Cluster>& cluster_presets();
/// nullptr when there is none of that name. Names: "a100-80g", "h100-80g", …
const Cluster* find_cluster(std::string_view name);

}  // namespace tessera::plan
