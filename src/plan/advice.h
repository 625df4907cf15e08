#pragma once

// The questions that an experienced person asks before choosing a layout, in their order, answered
// for one case with its numbers: cheap means first, and no other until they fail, or fit at a
// price: layers computed twice, waits. Then the next is asked too and the faster is taken. In the
// end the layout that they lead to is held against the best of a search.

#include <optional>
#include <string>
#include <vector>

#include "plan/search.h"

namespace tessera::plan {

struct AdviceStep {
  /// "batch", "one_gpu", "zero_1", "zero_2", "zero_3", "experts", "tensor", "pipeline"
  std::string key;
  std::string question;
  bool yes = false;
  std::string numbers;           ///< what the answer rests on
  std::string consequence;       ///< what follows from it
  std::optional<Layout> layout;  ///< that was asked about, in its best variant
  double bytes = 0;              ///< it needs on a device; 0: no such layout is legal
  double step_s = 0;             ///< it takes; 0: it does not fit
};

struct Advice {
  std::vector<AdviceStep> steps;        ///< as far as they had to be asked
  std::optional<Layout> layout;         ///< that they lead to; none: none fits
  Estimate estimate;                    ///< of it
  std::vector<TermDifference> against;  ///< of the search's best, by the time of each part
  double behind = 0;                    ///< how much longer it takes than that one: 0.05
  std::vector<std::string> warnings;    ///< of the layout that they lead to
};

/// `result` is of `space`. Values that the space pins are not kept to: the questions decide.
Advice advise(const SearchSpace& space, const SearchResult& result);

}  // namespace tessera::plan
