#pragma once

#include <optional>
#include <span>

namespace tessera::comm {

/// A collective's time as the model of a link sees it: `hops` messages one after the other, and
/// `bytes` through the link in all.
struct LinkSample {
  double hops = 0;
  double bytes = 0;
  double seconds = 0;
};

/// A link by the alpha-beta model (Hockney 1994): a message of S bytes takes latency + S / rate.
struct LinkFit {
  double latency_s = 0;
  double bytes_per_s = 0;
  double mean_error = 0;  ///< of the samples' times, as a fraction
};

/// The link that explains the samples best: least squares over latency and 1 / rate of the errors
/// relative to each measured time, so that microseconds weigh as much as seconds. A latency below 0
/// is 0. Nothing where the samples do not tell both: they need two ratios of bytes to hops.
std::optional<LinkFit> fit_link(std::span<const LinkSample> samples);

}  // namespace tessera::comm
