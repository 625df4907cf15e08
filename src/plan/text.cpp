#include "plan/text.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace tessera::plan {

namespace {

std::string printed(const char* format, double number, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), format, digits, number);
  return text.data();
}

}  // namespace

std::string number_text(double number, int digits) {
  return printed("%.*g", number, digits);
}

std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 6> kUnits = {"B", "kB", "MB", "GB", "TB", "PB"};
  size_t unit = 0;
  while (std::abs(bytes) >= 999.5 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  return number_text(bytes, 3) + ' ' + kUnits[unit];
}

std::string time_text(double seconds) {
  constexpr double kMinute = 60, kHour = 3600, kDay = 86400, kYear = 365.25 * kDay;
  if (seconds < 1e-3) return number_text(seconds * 1e6, 3) + " µs";
  if (seconds < 1) return number_text(seconds * 1e3, 3) + " ms";
  if (seconds < 2 * kMinute) return number_text(seconds, 4) + " s";
  if (seconds < 2 * kHour) return number_text(seconds / kMinute, 3) + " min";
  if (seconds < 2 * kDay) return number_text(seconds / kHour, 3) + " hours";
  if (seconds < 2 * kYear) return number_text(seconds / kDay, 3) + " days";
  return number_text(seconds / kYear, 3) + " years";
}

std::string percent_text(double fraction) {
  return printed("%.*f", fraction * 100, 1) + " %";
}

}  // namespace tessera::plan
