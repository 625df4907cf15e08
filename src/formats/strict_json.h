#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace tessera::formats {

/// Told why a text is refused; throws.
using Refuse = std::function<void(const std::string& why)>;

/// The JSON in `text`. Refuses, beside what is none (with line and column), what readers silently
/// resolve each in their own way, a key that stands twice in an object, and more than `max_depth`
/// levels.
nlohmann::json parse_json(std::string_view text, int max_depth, const Refuse& refuse);

/// The JSON object in `text`, of at most 64 levels. Throws ConfigError that begins with `where`.
nlohmann::json parse_json_object(std::string_view text, const std::string& where);

/// The same of a file that a user named. Throws ConfigError where it cannot be read, too.
nlohmann::json read_json_object(const std::string& path);

}  // namespace tessera::formats
