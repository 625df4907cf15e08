#pragma once

#include <cstdint>
#include <string>

#include "account/timeline.h"
#include "spec/schedule.h"

namespace tessera::cli {

struct DrawingOptions {
  /// Actions by the colours of PyTorch's drawings: F blue, I teal, W green, B orange. Otherwise an
  /// action that takes longer than its name is wide goes on in "=".
  bool colour = false;
  /// Columns of the screen: a longer step goes on in a further block of rows. 0: any number.
  int64_t width = 0;
};
/// A schedule for the terminal: a row a rank, from left to right the time, actions by kind and
/// micro-batch ("F3"), with the stage before it where a rank has several ("5F3"). The shortest
/// action is as wide as the longest name.
std::string drawing(const spec::Schedule& schedule, const account::Timeline& timeline,
                    const DrawingOptions& options);

}  // namespace tessera::cli
