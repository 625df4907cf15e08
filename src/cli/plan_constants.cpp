#include "cli/plan_constants.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/file.h"

namespace tessera::cli {

plan::Constants read_constants(const std::string& path) {
  plan::Constants constants = plan::default_constants();
  if (path.empty()) return constants;
  const auto json = nlohmann::json::parse(core::read_file(path), nullptr, false);
  if (!json.is_object() || !json.contains("constants") || !json["constants"].is_object()) {
    throw core::ConfigError(path +
                            " has no object \"constants\": `tessera plan calibrate --csv "
                            "FILE --out " +
                            path + "` writes one");
  }
  constants = plan::prior_constants();
  for (const auto& [name, value] : json["constants"].items()) {
    if (!value.is_number() || !(value.get<double>() >= 0)) {
      throw core::ConfigError(
          fmt::format("{}: {} = {} is not a number of 0 or more", path, name, value.dump()));
    }
    if (!plan::set_constant(constants, name, value.get<double>())) {
      throw core::ConfigError(fmt::format("{}: there is no constant named {}", path, name));
    }
  }
  return constants;
}

}  // namespace tessera::cli
