#pragma once

#include <string>
#include <vector>

#include "account/machine_times.h"

// What `tessera bench` measured, as files: units, state and collectives as JSON (`bench kernels`),
// links as TOML (`bench comm`).

namespace tessera::formats {

/// The kernels file of what was measured.
std::string to_json(const account::MachineTimes& machine);

/// A kernels file in `text`; `where` names it in messages. Throws ConfigError where it is none:
/// a key that is missing or of the wrong type, a time that is negative or not a number.
account::MachineTimes parse_machine_times(const std::string& text, const std::string& where);

/// The [[link]]s of a links file: name, ranks, latency_s, bytes_per_s. Throws ConfigError as above.
std::vector<account::LinkTimes> parse_links(const std::string& text, const std::string& where);

}  // namespace tessera::formats
