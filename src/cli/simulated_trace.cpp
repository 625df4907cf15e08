#include "cli/simulated_trace.h"

#include <algorithm>
#include <cmath>

#include "account/timeline.h"
#include "parallel/pipeline/action_spans.h"
#include "plan/parts.h"
#include "spec/mesh.h"
#include "trace/chrome_writer.h"

namespace tessera::cli {

namespace {

using trace::Lane;
using trace::Span;

int64_t to_ns(double seconds) {
  return std::llround(1e9 * seconds);
}

/// A step of one case: what all its ranks share.
class Step {
 public:
  Step(const plan::Case& run, const plan::Constants& constants, const plan::Estimate& estimate)
      : run_(run),
        estimate_(estimate),
        times_(plan::stage_times(run, constants)),
        schedule_(spec::make_schedule(run.layout.schedule, run.layout.pp, run.layout.v,
                                      plan::num_micro_batches(run.recipe, run.layout))),
        timeline_(account::simulate(schedule_, times_)) {
    streams_.begin(schedule_);
  }

  std::vector<Span> spans(int64_t pp_rank) const;

 private:
  void add_action(const spec::Action& action, const account::Interval& at, int64_t chunk,
                  std::vector<Span>& spans) const;
  void add_end(std::vector<Span>& spans) const;
  /// On another rank than the stage that `action` is of.
  bool leaves_rank(const spec::Action& action) const {
    const int64_t to = schedule_.stage_behind(action);
    return to >= 0 && rank_of(to) != rank_of(action.stage);
  }
  int64_t rank_of(int64_t stage) const {
    return schedule_.rank_of_stage[static_cast<size_t>(stage)];
  }
  int64_t message_bytes() const {
    const double tokens = static_cast<double>(run_.layout.micro_batch * run_.recipe.seq_len) /
                          static_cast<double>(run_.layout.cp * run_.layout.tp);
    return std::llround(tokens * static_cast<double>(run_.model.dense.hidden_size) *
                        plan::stream_bytes(run_.recipe));
  }

  const plan::Case& run_;
  const plan::Estimate& estimate_;
  account::StageTimes times_;
  spec::Schedule schedule_;
  account::Timeline timeline_;
  parallel::StreamNumbers streams_{1, 0};
};

/// On that row; its axis is the row's name.
Span span_on(Lane lane, const std::string& name, double begin_s, double end_s) {
  Span span;
  span.name = name;
  span.lane = lane;
  span.begin_ns = to_ns(begin_s);
  span.end_ns = to_ns(end_s);
  if (lane != Lane::compute && lane != Lane::host) {
    span.details.axis = trace::name_of(lane);
    span.details.collective = name;
  }
  return span;
}

void Step::add_action(const spec::Action& action, const account::Interval& at, int64_t chunk,
                      std::vector<Span>& spans) const {
  Span pass = parallel::span_of(action, chunk, to_ns(at.begin), to_ns(at.end));
  pass.flow_in = streams_.read_by(action);
  pass.flow_out = streams_.sent_by(action);
  spans.push_back(pass);
  const auto add_beside = [&](Span span) {
    span.details.stage = action.stage;
    span.details.chunk = chunk;
    span.details.micro_batch = action.micro_batch;
    spans.push_back(std::move(span));
  };
  const plan::StepTime& time = estimate_.time;
  if (time.tp_exposed_s > 0 && action.kind != spec::ActionKind::backward_weight) {
    const double shown = (at.end - at.begin) * time.tp_exposed_s / time.compute_s;
    const char* name = run_.layout.sequence_parallel ? "all-gather, reduce-scatter" : "all-reduce";
    add_beside(span_on(Lane::tp, name, at.end - shown, at.end));
  }
  if (times_.message > 0 && leaves_rank(action)) {
    Span message = span_on(Lane::pp, "send", at.end, at.end + times_.message);
    message.details.bytes = message_bytes();
    add_beside(std::move(message));
  }
}

void Step::add_end(std::vector<Span>& spans) const {
  const plan::StepTime& time = estimate_.time;
  double now = timeline_.makespan;
  if (time.dp_exposed_s > 0) {
    const double end = now + time.dp_exposed_s;
    const char* name = run_.layout.zero == 0 ? "all-reduce" : "reduce-scatter, all-gather";
    Span reduction = span_on(Lane::dp, name, now, end);
    reduction.details.bytes = std::llround(estimate_.traffic.dp);
    spans.push_back(std::move(reduction));
    Span wait = span_on(Lane::compute, "wait", now, end);
    wait.details.axis = trace::name_of(Lane::dp);
    spans.push_back(std::move(wait));
    now = end;
  }
  spans.push_back(span_on(Lane::compute, "optimizer", now, now + time.optimizer_s));
  now += time.optimizer_s;
  spans.push_back(span_on(Lane::host, "overhead", now, now + time.overhead_s));
}

std::vector<Span> Step::spans(int64_t pp_rank) const {
  const auto rank = static_cast<size_t>(pp_rank);
  const std::vector<int64_t> stages = schedule_.stages_of(pp_rank);
  std::vector<Span> spans;
  for (size_t i = 0; i < schedule_.ranks[rank].size(); ++i) {
    const spec::Action& action = schedule_.ranks[rank][i];
    const auto at = std::find(stages.begin(), stages.end(), action.stage);
    add_action(action, timeline_.ranks[rank][i], at - stages.begin(), spans);
  }
  add_end(spans);
  for (Span& span : spans) span.details.step = 1;
  return spans;
}

}  // namespace

std::vector<SimulatedRank> simulated_step(const plan::Case& run, const plan::Constants& constants,
                                          const plan::Estimate& estimate) {
  const Step step(run, constants, estimate);
  const plan::Layout& layout = run.layout;
  const spec::Mesh mesh{layout.pp, layout.dp, layout.cp, layout.tp};
  std::vector<SimulatedRank> ranks;
  for (int64_t pp = 0; pp < layout.pp; ++pp) {
    ranks.push_back({mesh.rank_of({pp, 0, 0, 0}), step.spans(pp)});
  }
  return ranks;
}

std::vector<std::string> write_simulated_trace(const std::string& folder, int64_t world_size,
                                               std::vector<SimulatedRank> ranks) {
  const trace::Origin origin = trace::origin_now();
  const int64_t begin_ns = trace::on_this_host(origin);
  std::vector<std::string> paths;
  for (SimulatedRank& rank : ranks) {
    for (Span& span : rank.spans) {
      span.begin_ns += begin_ns;
      span.end_ns += begin_ns;
    }
    trace::ChromeWriter writer(folder, static_cast<int>(rank.rank), static_cast<int>(world_size),
                               origin);
    writer.write(std::move(rank.spans));
    paths.push_back(writer.path());
  }
  return paths;
}

}  // namespace tessera::cli
