#pragma once

// Why a plan's numbers are what they are. Each number has its formula, in words and symbols, and
// the same with its values: an expression in + - * / ( ) sqrt ln min max that a calculator takes,
// then = and what comes out. Tests evaluate every one and hold it to the number it explains, so
// that an explanation cannot differ from what is computed.

#include <string>
#include <vector>

#include "plan/estimate.h"
#include "plan/ideal.h"

namespace tessera::plan {

/// Of every number of an estimate for `run`, of its worst rank where ranks differ. Quantities are
/// named as keys of the plan's JSON, "memory_bytes_per_gpu.weights".
std::vector<Reason> explain(const Case& run, const Constants& constants, const Estimate& estimate);
/// What an estimate of such a case leaves out.
std::vector<std::string> not_modelled(const Case& run);

/// The same of the textbook.
std::vector<Reason> explain(const IdealCase& given, const Ideal& ideal);
std::vector<std::string> not_modelled(const IdealCase& given);

/// Training on so many tokens.
struct Training {
  double tokens = 0;
  double flops_per_token = 0;
  double tokens_per_s = 0;
  int64_t devices = 1;
  double usd_per_device_hour = 0;
};
std::vector<Reason> explain(const Training& training);

}  // namespace tessera::plan
