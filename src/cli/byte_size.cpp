#include "cli/byte_size.h"

#include <cmath>
#include <cstdlib>

namespace tessera::cli {

std::optional<int64_t> parse_bytes(const std::string& text) {
  if (text.empty() || text.find_first_not_of("0123456789.") == 0) return std::nullopt;
  const size_t digits = text.find_first_not_of("0123456789.");
  char* end = nullptr;
  const std::string number = text.substr(0, digits);
  double bytes = std::strtod(number.c_str(), &end);
  if (*end != '\0') return std::nullopt;
  std::string unit = digits == std::string::npos ? "" : text.substr(digits);
  for (const char* suffix : {"iB", "B", "b"}) {
    const std::string tail = suffix;
    if (unit.size() >= tail.size() &&
        unit.compare(unit.size() - tail.size(), tail.size(), tail) == 0) {
      unit.resize(unit.size() - tail.size());
      break;
    }
  }
  if (unit == "K" || unit == "k") {
    bytes *= 1024;
  } else if (unit == "M" || unit == "m") {
    bytes *= 1024.0 * 1024;
  } else if (unit == "G" || unit == "g") {
    bytes *= 1024.0 * 1024 * 1024;
  } else if (!unit.empty()) {
    return std::nullopt;
  }
  if (!(bytes >= 1 && bytes <= std::ldexp(1.0, 50))) return std::nullopt;
  return static_cast<int64_t>(bytes);
}

}  // namespace tessera::cli
