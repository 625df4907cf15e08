#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace tessera::formats {

/// The JSON object in `text`. Refuses what readers silently resolve each in their own way: a key
/// that stands twice in an object. Throws ConfigError that begins with `where` and tells line and
/// column.
nlohmann::json parse_json_object(std::string_view text, const std::string& where);

/// The same of a file that a user named. Throws ConfigError where it cannot be read, too.
nlohmann::json read_json_object(const std::string& path);

}  // namespace tessera::formats
