#include "plan/ticks.h"

#include <algorithm>

#include "account/timeline.h"
#include "spec/schedule.h"

namespace tessera::plan {

Ticks ticks_of(const Layout& layout, int64_t micro_batches) {
  constexpr int64_t kMostActions = 1'000'000;
  const int64_t actions_of_one = 3 * layout.stages();
  const int64_t enough = 4 * layout.pp + micro_batches % layout.pp;
  const bool all = micro_batches <= std::max(enough, kMostActions / actions_of_one);
  const int64_t simulated = all ? micro_batches : enough;
  const spec::Schedule schedule =
      spec::make_schedule(layout.schedule, layout.pp, layout.v, simulated);
  const double part = 1.0 / static_cast<double>(layout.v);
  const account::Timeline timeline =
      account::simulate(schedule, account::even_times(schedule, {part, 2 * part, part, part}));
  const double rest = 3 * static_cast<double>(micro_batches - simulated);
  return {timeline.makespan + rest,
          *std::max_element(timeline.busy.begin(), timeline.busy.end()) + rest};
}

}  // namespace tessera::plan
