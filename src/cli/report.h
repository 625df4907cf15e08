#pragma once

#include <string>

#include "train/summary.h"

namespace tessera::cli {

/// What `train` prints at the end: losses beside the unigram entropy, speed, and for every rank the
/// memory by category and the bytes sent in a step, predicted beside measured.
std::string final_report(const train::Summary& summary);

}  // namespace tessera::cli
