#pragma once

// What one knob does to the best layout with all others held. Part of search.h.

#include "plan/search.h"

namespace tessera::plan {

/// `layout` with the knob at the value, and what has to follow: dp takes up the devices, a schedule
/// and its stages on a rank go together. It may be illegal.
Layout turned(const Layout& layout, Knob knob, int64_t value, int64_t devices);

/// Fills held_s of every value in result.sensitivity. Does nothing where nothing fits.
void add_held_values(const SearchSpace& space, SearchResult& result, const ForEach& for_each);

}  // namespace tessera::plan
