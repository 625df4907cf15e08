#include "comm/link_fit.h"

#include <cmath>

namespace tessera::comm {

// With x = hops / seconds and y = bytes / seconds, the best a and b of a·x + b·y = 1 solve the
// normal equations  [Σxx Σxy; Σxy Σyy] (a, b) = (Σx, Σy).
std::optional<LinkFit> fit_link(std::span<const LinkSample> samples) {
  double xx = 0, xy = 0, yy = 0, sum_x = 0, sum_y = 0;
  for (const LinkSample& sample : samples) {
    if (!(sample.seconds > 0)) continue;
    const double x = sample.hops / sample.seconds;
    const double y = sample.bytes / sample.seconds;
    xx += x * x;
    xy += x * y;
    yy += y * y;
    sum_x += x;
    sum_y += y;
  }
  const double determinant = xx * yy - xy * xy;
  if (!(determinant > 1e-12 * xx * yy)) return std::nullopt;
  double latency = (sum_x * yy - sum_y * xy) / determinant;
  double seconds_a_byte = (sum_y * xx - sum_x * xy) / determinant;
  if (latency < 0) {
    latency = 0;
    seconds_a_byte = sum_y / yy;
  }
  if (!(seconds_a_byte > 0)) return std::nullopt;

  LinkFit fit{latency, 1 / seconds_a_byte, 0};
  double errors = 0;
  int counted = 0;
  for (const LinkSample& sample : samples) {
    if (!(sample.seconds > 0)) continue;
    const double modelled = latency * sample.hops + seconds_a_byte * sample.bytes;
    errors += std::abs(modelled / sample.seconds - 1);
    ++counted;
  }
  fit.mean_error = errors / counted;
  return fit;
}

}  // namespace tessera::comm
