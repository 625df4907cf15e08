#pragma once

#include <string>
#include <string_view>

#include "data/vocabulary.h"

namespace tessera::data {

/// The Unicode normal form of well-formed UTF-8 (UAX #15). `text` itself, borrowed, when it is in
/// that form already; otherwise `buffer`. Throws RunError when memory runs out.
std::string_view normalized(std::string_view text, Normalization form, std::string& buffer);

}  // namespace tessera::data
