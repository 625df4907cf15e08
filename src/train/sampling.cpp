#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/rng.h"
#include "train/generate.h"

namespace tessera::train {

namespace {

/// Tokens from the likeliest down, cut to top_k and top_p, with unnormalised probabilities.
struct Candidates {
  std::vector<int32_t> tokens;
  std::vector<double> weights;
};

Candidates candidates_of(const std::vector<float>& logits, const SamplingOptions& options) {
  Candidates candidates;
  auto& tokens = candidates.tokens;
  tokens.resize(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto likelier = [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  if (options.top_k > 0 && options.top_k < static_cast<int64_t>(tokens.size())) {
    std::partial_sort(tokens.begin(), tokens.begin() + options.top_k, tokens.end(), likelier);
    tokens.resize(static_cast<size_t>(options.top_k));
  } else {
    std::sort(tokens.begin(), tokens.end(), likelier);
  }
  const float largest = logits[static_cast<size_t>(tokens[0])];
  double total = 0;
  for (int32_t token : tokens) {
    const double score = static_cast<double>(logits[static_cast<size_t>(token)]) - largest;
    candidates.weights.push_back(std::exp(score / options.temperature));
    total += candidates.weights.back();
  }
  double kept = 0;
  size_t count = 0;
  while (count < tokens.size() && (count == 0 || kept < options.top_p * total)) {
    kept += candidates.weights[count++];
  }
  tokens.resize(count);
  candidates.weights.resize(count);
  return candidates;
}

}  // namespace

int32_t sample_token(std::vector<float> logits, const SamplingOptions& options, int64_t position) {
  const auto wrong = std::find_if_not(logits.begin(), logits.end(),
                                      [](float logit) { return std::isfinite(logit); });
  if (wrong != logits.end()) {
    throw core::RunError(
        fmt::format("The model's logits are not finite: token {} has {}, after {} new tokens. Its "
                    "weights are damaged, or its training diverged; use an earlier checkpoint.",
                    wrong - logits.begin(), *wrong, position));
  }
  if (options.temperature <= 0) {
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  const Candidates candidates = candidates_of(logits, options);
  const double total = std::accumulate(candidates.weights.begin(), candidates.weights.end(), 0.0);
  const auto draws = core::philox(core::stream_key(options.seed, core::Stream::sampling),
                                  static_cast<uint64_t>(position), 0);
  double left = static_cast<double>(core::to_uniform(draws[0])) * total;
  for (size_t i = 0; i < candidates.tokens.size(); ++i) {
    left -= candidates.weights[i];
    if (left < 0) return candidates.tokens[i];
  }
  return candidates.tokens.back();
}

}  // namespace tessera::train
