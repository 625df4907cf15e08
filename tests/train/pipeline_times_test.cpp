#include "train/pipeline_times.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "toy_run.h"
#include "train/summary.h"
#include "train/thread_ranks.h"
#include "train/trainer.h"

namespace tessera::train {
namespace {

using parallel::TimedAction;
using spec::ActionKind;

/// Every action of the rank, one after the other; each takes `ns`, a backward twice that.
std::vector<TimedAction> actions_of(const spec::Schedule& schedule, int rank, int64_t ns) {
  std::vector<TimedAction> done;
  int64_t now = 100;
  for (const spec::Action& action : schedule.ranks[static_cast<size_t>(rank)]) {
    const int64_t takes = action.kind == ActionKind::forward ? ns : 2 * ns;
    done.push_back({action, now, now + takes});
    now += takes;
  }
  return done;
}

TEST(PipelineTimes, AreMeansOverStepsAndRanksWithoutTheFirstStep) {
  const spec::Schedule schedule = spec::make_schedule(spec::ScheduleKind::one_f_one_b, 2, 1, 4);
  run_thread_ranks({4, 4}, {}, [&](comm::Communicator& world) {
    // Two pipelines; the second takes three times as long.
    const int64_t ns = world.rank() < 2 ? 1000 : 3000;
    PipelineTimes times(schedule);
    times.add_step(actions_of(schedule, world.rank() % 2, 1000 * ns), 0.9);
    EXPECT_DOUBLE_EQ(times.bubble_measured(), 0.9) << "where it is the only one, it counts";
    times.add_step(actions_of(schedule, world.rank() % 2, ns), 0.2);
    times.add_step(actions_of(schedule, world.rank() % 2, 3 * ns), 0.4);
    EXPECT_DOUBLE_EQ(times.bubble_measured(), 0.3);
    const account::StageTimes mean = times.mean_times(world);
    ASSERT_EQ(mean.stages.size(), 2u);
    for (const account::ActionTimes& stage : mean.stages) {
      EXPECT_NEAR(stage.forward, 4e-6, 1e-12);
      EXPECT_NEAR(stage.backward, 8e-6, 1e-12);
      EXPECT_EQ(stage.backward_input, 0);
    }
    EXPECT_NEAR(times.bubble_simulated(world), 1.0 / 5, 1e-9);
  });
}

TEST(BubbleFraction, IsPredictedAsPublishedWhereStagesAreEven) {
  spec::RunConfig config = toy_config("");
  config.model.hidden_size = 1024;
  config.model.num_hidden_layers = 12;
  config.model.vocab_size = 1;  // so that the head costs next to nothing
  config.training.micro_batch_size = 1;
  for (const int64_t p : {2, 3, 4}) {
    for (const int64_t m : {4, 8}) {
      for (const char* schedule : {"gpipe", "1f1b"}) {
        spec::RunConfig run = config;
        run.training.global_batch_size = m;
        run.parallelism.pipeline_parallel_degree = p;
        run.parallelism.pipeline_schedule = schedule;
        run.parallelism.layers_per_stage.assign(static_cast<size_t>(p), 12 / p);
        const Prediction prediction =
            predict(spec::resolved(run, static_cast<int>(p)), std::vector<int64_t>(p, 0));
        const auto ranks = static_cast<double>(p);
        EXPECT_NEAR(prediction.bubble_fraction, (ranks - 1) / (static_cast<double>(m) + ranks - 1),
                    1e-3)
            << schedule << " p " << p << " m " << m;
      }
    }
  }
}

TEST(BubbleFraction, StandsInTheSummaryThreeTimes) {
  const TestFolder folder;
  TrainOptions options;
  options.config = toy_config(write_toy_text(folder.path() / "toy.jsonl"));
  options.config.training.steps = 3;
  options.config.training.micro_batch_size = 2;
  for (const int ranks : {1, 2}) {
    options.config.parallelism.pipeline_parallel_degree = ranks;
    options.run_dir = folder.path() / std::to_string(ranks);
    run_thread_ranks({ranks, ranks}, {}, [&](comm::Communicator& comm) {
      const Summary summary = train(options, comm, {});
      const auto bubble = nlohmann::json::parse(to_json(summary))["bubble_fraction"];
      for (const char* kind : {"predicted", "simulated", "measured"}) {
        const double fraction = bubble[kind];
        EXPECT_TRUE(ranks > 1 ? fraction > 0 && fraction < 1 : fraction == 0)
            << kind << " " << fraction << " of " << ranks;
      }
    });
  }
}

}  // namespace
}  // namespace tessera::train
