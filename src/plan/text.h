#pragma once

// Numbers as text, for reasons and messages: this module has no formatting library.

#include <cstdint>
#include <string>

namespace tessera::plan {

/// Three significant digits and a unit's prefix: "23.6 GB", "1.16 TB", "812 kB".
std::string bytes_text(double bytes);
/// "8.10e+22" where it is large or small, "0.471" else: `digits` significant ones.
std::string number_text(double number, int digits = 4);
/// "2.31 s", "4.2 ms", "17 µs"; "2.4 min", "98.1 days", "17.1 years" for what takes longer.
std::string time_text(double seconds);
/// "2.3 %".
std::string percent_text(double fraction);

}  // namespace tessera::plan
