#include "plan/sensitivity.h"

#include <algorithm>
#include <cmath>

#include "plan/step.h"
#include "plan/text.h"
#include "spec/options.h"

namespace tessera::plan {

std::string_view name_of(Knob knob) {
  constexpr std::array<std::string_view, kNumKnobs> kNames = {
      "tp", "sp", "cp",   "pp",    "schedule",    "v",
      "dp", "ep", "zero", "shard", "micro_batch", "recompute"};
  return kNames[static_cast<size_t>(knob)];
}

std::string_view name_of(Rejection reason) {
  constexpr std::array<std::string_view, 5> kNames = {"illegal", "memory", "bound", "slower",
                                                      "equal"};
  return kNames[static_cast<size_t>(reason)];
}

int64_t value_of(const Layout& layout, Knob knob) {
  switch (knob) {
    case Knob::tp:
      return layout.tp;
    case Knob::sequence_parallel:
      return layout.sequence_parallel ? 1 : 0;
    case Knob::cp:
      return layout.cp;
    case Knob::pp:
      return layout.pp;
    case Knob::schedule:
      return static_cast<int64_t>(layout.schedule);
    case Knob::v:
      return layout.v;
    case Knob::dp:
      return layout.dp;
    case Knob::ep:
      return layout.ep;
    case Knob::zero:
      return layout.zero;
    case Knob::shard:
      return layout.shard;
    case Knob::micro_batch:
      return layout.micro_batch;
    case Knob::recompute:
      return static_cast<int64_t>(layout.recompute);
  }
  return 0;
}

std::string value_text(Knob knob, int64_t value) {
  if (knob == Knob::schedule) {
    return std::string(spec::schedule_name(static_cast<spec::ScheduleKind>(value)));
  }
  if (knob == Knob::recompute) {
    return std::string(spec::name_of(static_cast<spec::Recompute>(value)));
  }
  if (knob == Knob::shard && value == 0) return "all";
  return std::to_string(value);
}

std::vector<TermDifference> differences(const StepTime& one, const StepTime& other) {
  // Exposed waits of tp, cp and ep are part of compute_s: taken out, every second is in one term.
  const auto work = [](const StepTime& time) {
    return time.compute_s - time.tp_exposed_s - time.cp_exposed_s - time.ep_exposed_s;
  };
  std::vector<TermDifference> terms = {
      {"compute_s", work(one) - work(other)},
      {"tp_exposed_s", one.tp_exposed_s - other.tp_exposed_s},
      {"cp_exposed_s", one.cp_exposed_s - other.cp_exposed_s},
      {"ep_exposed_s", one.ep_exposed_s - other.ep_exposed_s},
      {"dp_exposed_s", one.dp_exposed_s - other.dp_exposed_s},
      {"pp_bubble_s", one.pp_bubble_s - other.pp_bubble_s},
      {"optimizer_s", one.optimizer_s - other.optimizer_s},
      {"overhead_s", one.overhead_s - other.overhead_s},
  };
  const double least = 1e-3 * std::min(one.step_s, other.step_s);
  std::erase_if(terms, [&](const TermDifference& term) { return std::abs(term.seconds) < least; });
  std::sort(terms.begin(), terms.end(),
            [](const TermDifference& first, const TermDifference& second) {
              const double larger = std::abs(first.seconds) - std::abs(second.seconds);
              return larger != 0 ? larger > 0 : first.term < second.term;
            });
  return terms;
}

Layout turned(const Layout& layout, Knob knob, int64_t value, int64_t devices) {
  Layout other = layout;
  const auto take_up = [&] {
    other.dp = std::max<int64_t>(devices / (other.tp * other.cp * other.pp), 1);
  };
  switch (knob) {
    case Knob::tp:
      other.tp = value;
      if (value == 1) other.sequence_parallel = false;
      take_up();
      break;
    case Knob::sequence_parallel:
      other.sequence_parallel = value != 0;
      break;
    case Knob::cp:
      other.cp = value;
      take_up();
      break;
    case Knob::pp:
      other.pp = value;
      if (value == 1) {
        other.v = 1;
        other.schedule = spec::ScheduleKind::one_f_one_b;
      }
      take_up();
      break;
    case Knob::schedule:
      other.schedule = static_cast<spec::ScheduleKind>(value);
      if (!spec::takes_chunks(other.schedule, other.v)) {
        other.v = spec::usual_chunks(other.schedule);
      }
      break;
    case Knob::v:
      other.v = value;
      if (!spec::takes_chunks(other.schedule, value)) {
        other.schedule =
            value == 1 ? spec::ScheduleKind::one_f_one_b : spec::ScheduleKind::interleaved;
      }
      break;
    case Knob::dp:
      other.dp = value;
      break;
    case Knob::ep:
      other.ep = value;
      break;
    case Knob::zero:
      other.zero = value;
      if (value == 0) other.shard = 0;
      break;
    case Knob::shard:
      other.shard = value;
      break;
    case Knob::micro_batch:
      other.micro_batch = value;
      break;
    case Knob::recompute:
      other.recompute = static_cast<spec::Recompute>(value);
      break;
  }
  return other;
}

namespace {

void hold(const SearchSpace& space, const Layout& best, Knob knob, KnobValue& line) {
  const Layout layout = turned(best, knob, line.value, space.devices);
  const auto refuse = [&](std::string why) {
    if (line.reason.empty()) line.reason = std::move(why);
  };
  if (knob == Knob::shard && layout.zero == 0) return refuse("ZeRO is off");
  const bool of_pipeline = knob == Knob::schedule || knob == Knob::v;
  if (of_pipeline && layout.pp == 1 && line.value != value_of(best, knob)) {
    return refuse("there is no pipeline");
  }
  if (layout.devices() != space.devices) return refuse("other degrees have to change with it");
  const std::vector<spec::Violation> found = mistakes(space.model, space.recipe, layout);
  if (!found.empty()) {
    return refuse(found.front().key + " = " + found.front().value + ' ' + found.front().why);
  }
  const std::vector<Memory> ranks = memory_of_ranks(space.at(layout));
  const double bytes = ranks[worst_rank(ranks)].total();
  if (bytes > static_cast<double>(space.cluster.device.memory_bytes)) {
    return refuse("needs " + bytes_text(bytes));
  }
  line.held_s = step_time(space.at(layout), space.constants).step_s;
}

}  // namespace

void add_held_values(const SearchSpace& space, SearchResult& result, const ForEach& for_each) {
  if (result.best.empty()) return;
  std::vector<std::pair<Knob, KnobValue*>> lines;
  for (Sensitivity& sensitivity : result.sensitivity) {
    for (KnobValue& line : sensitivity.values) lines.push_back({sensitivity.knob, &line});
  }
  const Layout& best = result.best.front().layout;
  for_each(lines.size(), [&](size_t i) { hold(space, best, lines[i].first, *lines[i].second); });
}

}  // namespace tessera::plan
