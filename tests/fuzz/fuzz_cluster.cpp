// A cluster's description, and a file of links, in TOML.

#include <cmath>

#include "cli/cluster_file.h"
#include "driver.h"
#include "formats/config_io.h"

std::vector<std::string> tessera::fuzz::seeds() {
  return {
      "[cluster]\nname = \"mine\"\nbase = \"h100-80g\"\ndevices_per_node = 4\n[device]\n"
      "family = \"hopper\"\nmemory_bytes = 96e9\nunits = 132\n[intra]\nbytes_per_s = 3e11\n"
      "[inter]\nbytes_per_s = 12.5e9\nlatency_s = 8e-6\n",
      "cluster = { base = \"cpu-host\", usd_per_device_hour = 0.4 }\n",
      "[[link]]\nname = \"shm\"\nranks = 2\nlatency_s = 1.5e-6\nbytes_per_s = 8.2e9\n"
      "[[link]]\nname = \"mpi\"\nlatency_s = 2e-6\nbytes_per_s = 3e9\n",
      "link = [{ name = \"intra\", latency_s = 1e-6, bytes_per_s = 1e9 }]\n",
  };
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tessera;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto sound = [](const plan::Cluster& cluster) {
    return cluster.devices_per_node >= 1 && cluster.device.memory_bytes >= 1 &&
           std::isfinite(cluster.intra.bytes_per_s) && cluster.intra.bytes_per_s > 0 &&
           std::isfinite(cluster.inter.latency_s) && cluster.inter.latency_s >= 0;
  };
  const bool links = text.find("link") != std::string::npos;
  plan::Cluster cluster = *plan::find_cluster("cpu-host");
  std::vector<spec::Violation> violations;
  const auto read = [&] {
    if (links) {
      cli::parse_links(text, "links.toml", cluster, violations);
    } else {
      cluster = cli::parse_cluster(text, "cluster.toml", violations);
    }
    if (!violations.empty()) throw core::ConfigError(formats::describe(violations, "cluster"));
  };
  fuzz::refused(read);
  fuzz::expect(sound(cluster), "a cluster can be computed with, whatever its file says");
  return 0;
}

std::vector<std::string> tessera::fuzz::dictionary() {
  return {"base = \"a100-80g\"",
          "[[link]]",
          "[cluster]",
          "= -1",
          "= nan",
          "= inf",
          "= 1e400",
          "= 9223372036854775807",
          "name = \"intra\"",
          "\xFF",
          "\"\"\"",
          "[",
          "{",
          "="};
}
