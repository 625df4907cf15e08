#pragma once

#include <cstdint>
#include <iterator>

namespace tessera::comm {

/// Bytes this rank has copied towards its peers, by collective: counted where they are copied. What
/// is written once for all counts once for each peer, as each of them copies it. A rank's own share
/// never counts.
struct Traffic {
  int64_t all_reduce = 0;
  int64_t reduce_scatter = 0;
  int64_t all_gather = 0;
  int64_t broadcast = 0;
  int64_t all_to_all = 0;  ///< both
  int64_t gather = 0;
  int64_t scatter = 0;
  int64_t point_to_point = 0;
  int64_t total() const;
  Traffic& operator+=(const Traffic& other);
};

/// A collective of the count, and its name in files: the list of all of them.
struct TrafficEntry {
  const char* name;
  int64_t Traffic::* bytes;
};
inline constexpr TrafficEntry kTrafficEntries[] = {
    {"all_reduce", &Traffic::all_reduce}, {"reduce_scatter", &Traffic::reduce_scatter},
    {"all_gather", &Traffic::all_gather}, {"broadcast", &Traffic::broadcast},
    {"all_to_all", &Traffic::all_to_all}, {"gather", &Traffic::gather},
    {"scatter", &Traffic::scatter},       {"point_to_point", &Traffic::point_to_point},
};
static_assert(sizeof(Traffic) == std::size(kTrafficEntries) * sizeof(int64_t));

inline int64_t Traffic::total() const {
  int64_t total = 0;
  for (const TrafficEntry& entry : kTrafficEntries) total += this->*entry.bytes;
  return total;
}

inline Traffic& Traffic::operator+=(const Traffic& other) {
  for (const TrafficEntry& entry : kTrafficEntries) this->*entry.bytes += other.*entry.bytes;
  return *this;
}

/// What was sent between `before` and `after`.
inline Traffic operator-(const Traffic& after, const Traffic& before) {
  Traffic sent;
  for (const TrafficEntry& entry : kTrafficEntries) {
    sent.*entry.bytes = after.*entry.bytes - before.*entry.bytes;
  }
  return sent;
}

}  // namespace tessera::comm
