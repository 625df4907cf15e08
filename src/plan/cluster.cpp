#include "plan/cluster.h"

namespace tessera::plan {

std::string_view name_of(Family family) {
  switch (family) {
    case Family::volta:
      return "volta";
    case Family::ampere:
      return "ampere";
    case Family::hopper:
      return "hopper";
    case Family::blackwell:
      return "blackwell";
    case Family::cdna:
      return "cdna";
    case Family::tpu:
      return "tpu";
    case Family::host:
      return "host";
  }
  return "";
}

std::string_view name_of(Format format) {
  switch (format) {
    case Format::fp32:
      return "fp32";
    case Format::bf16:
      return "bf16";
    case Format::fp16:
      return "fp16";
    case Format::fp8:
      return "fp8";
    case Format::fp4:
      return "fp4";
  }
  return "";
}

Format Device::computed_in(Format format) const {
  if (format == Format::fp4 && fp4_flops <= 0) format = Format::fp8;
  if (format == Format::fp8 && fp8_flops <= 0) format = Format::bf16;
  return format == Format::bf16 && family == Family::volta ? Format::fp16 : format;
}

double Device::peak(Format format) const {
  switch (computed_in(format)) {
    case Format::fp32:
      return fp32_flops;
    case Format::bf16:
    case Format::fp16:
      return bf16_flops;
    case Format::fp8:
      return fp8_flops;
    case Format::fp4:
      return fp4_flops;
  }
  return bf16_flops;
}

namespace {

constexpr double kGB = 1e9, kTera = 1e12;
/// Memory is sold in powers of ten and counted in powers of two.
constexpr int64_t gib(int64_t count) {
  return count << 30;
}

/// The figures in which devices differ, in TFLOP/s, GiB and GB/s.
struct Sheet {
  double fp32, bf16, fp8, fp4;
  int64_t memory_gib;
  double memory_gb_per_s;
  int64_t units;
  Family family;
};

Device device(std::string name, const Sheet& sheet) {
  Device made;
  made.name = std::move(name);
  made.fp32_flops = sheet.fp32 * kTera;
  made.bf16_flops = sheet.bf16 * kTera;
  made.fp8_flops = sheet.fp8 * kTera;
  made.fp4_flops = sheet.fp4 * kTera;
  made.memory_bytes = gib(sheet.memory_gib);
  made.memory_bytes_per_s = sheet.memory_gb_per_s * kGB;
  made.units = sheet.units;
  made.family = sheet.family;
  return made;
}

/// A node of eight with links in GB/s each way, a network card of its own for every device.
Cluster nodes_of_8(std::string name, Device device, double intra, double inter, double usd,
                   std::string source) {
  Cluster cluster;
  cluster.name = std::move(name);
  cluster.device = std::move(device);
  cluster.intra = {intra * kGB, 3e-6};
  cluster.inter = {inter * kGB, 8e-6};
  cluster.usd_per_device_hour = usd;
  cluster.source = std::move(source);
  return cluster;
}

Cluster rack_of(Cluster cluster, int64_t devices) {
  cluster.devices_per_node = devices;
  return cluster;
}

std::vector<Cluster> make_presets() {
  const Sheet v100{15.7, 125, 0, 0, 32, 900, 80, Family::volta};
  const Sheet a100_40{156, 312, 0, 0, 40, 1555, 108, Family::ampere};
  const Sheet a100_80{156, 312, 0, 0, 80, 2039, 108, Family::ampere};
  const Sheet h100{494.7, 989.4, 1978.9, 0, 80, 3350, 132, Family::hopper};
  const Sheet h100_96{494.7, 989.4, 1978.9, 0, 94, 2400, 132, Family::hopper};
  const Sheet h200{494.7, 989.4, 1978.9, 0, 141, 4800, 132, Family::hopper};
  const Sheet b200{1125, 2250, 4500, 9000, 180, 8000, 148, Family::blackwell};
  const Sheet gb200{1225, 2450, 4900, 9800, 186, 8000, 152, Family::blackwell};
  const Sheet b300{1125, 2250, 4500, 13500, 268, 8000, 148, Family::blackwell};
  const Sheet gb300{1250, 2500, 5000, 15000, 279, 8000, 152, Family::blackwell};
  const Sheet mi300x{653.7, 1307.4, 2614.9, 0, 192, 5300, 304, Family::cdna};
  const Sheet v5p{0, 459, 0, 0, 95, 2765, 8, Family::tpu};
  const Sheet host{1.6, 3.2, 0, 0, 256, 300, 64, Family::host};
  std::vector<Cluster> presets;
  presets.push_back(nodes_of_8("v100-32g", device("V100-32GB", v100), 150, 12.5, 1.5,
                               "NVIDIA V100 data sheet (SXM2 32 GB); DGX-2-like 100 Gbit/s a GPU"));
  presets.push_back(nodes_of_8("a100-40g", device("A100-40GB", a100_40), 300, 25, 1.8,
                               "NVIDIA A100 data sheet (SXM4 40 GB); HDR InfiniBand a GPU"));
  presets.push_back(nodes_of_8("a100-80g", device("A100-80GB", a100_80), 300, 25, 2.2,
                               "NVIDIA A100 data sheet (SXM4 80 GB); HDR InfiniBand a GPU"));
  presets.push_back(nodes_of_8("h100-80g", device("H100-80GB", h100), 450, 50, 3.5,
                               "NVIDIA H100 data sheet (SXM5 80 GB); NDR InfiniBand a GPU"));
  presets.push_back(nodes_of_8("h100-96g", device("H100-96GB", h100_96), 450, 50, 3.5,
                               "H100 with 96 GB of HBM2e at 500 W, as in torchtitan's reports"));
  presets.push_back(nodes_of_8("h200", device("H200", h200), 450, 50, 4,
                               "NVIDIA H200 data sheet (SXM 141 GB); NDR InfiniBand a GPU"));
  Sheet h800 = h100;
  presets.push_back(nodes_of_8("h800", device("H800", h800), 200, 50, 3,
                               "H100 with NVLink at 400 GB/s both ways (DeepSeek-V3 report)"));
  presets.push_back(nodes_of_8("b200", device("B200", b200), 900, 50, 5.5,
                               "NVIDIA DGX B200 data sheet; 400 Gbit/s a GPU"));
  presets.push_back(nodes_of_8("b300", device("B300", b300), 900, 100, 6.5,
                               "NVIDIA DGX B300 data sheet; 800 Gbit/s a GPU"));
  presets.push_back(rack_of(nodes_of_8("gb200", device("GB200", gb200), 900, 50, 6,
                                       "NVIDIA's published runs on GB200 NVL72; 400 Gbit/s a GPU"),
                            72));
  presets.push_back(rack_of(nodes_of_8("gb300", device("GB300", gb300), 900, 100, 7,
                                       "NVIDIA GB300 NVL72 data sheet; 800 Gbit/s a GPU"),
                            72));
  presets.push_back(nodes_of_8("mi300x", device("MI300X", mi300x), 448, 50, 3,
                               "AMD MI300X data sheet; Infinity Fabric to 7 neighbours"));
  presets.push_back(
      rack_of(nodes_of_8("tpu-v5p", device("TPU-v5p", v5p), 300, 25, 4.2,
                         "Google TPU v5p documentation: 4,800 Gbit/s of links a chip"),
              256));
  Cluster cpu = rack_of(nodes_of_8("cpu-host", device("CPU", host), 20, 3, 0.5,
                                   "a guess at a server of 64 cores; measure your own"),
                        1);
  presets.push_back(std::move(cpu));
  return presets;
}

}  // namespace

const std::vector<Cluster>& cluster_presets() {
  static const std::vector<Cluster> presets = make_presets();
  return presets;
}

const Cluster* find_cluster(std::string_view name) {
  for (const Cluster& preset : cluster_presets()) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

}  // namespace tessera::plan
