#include "plan/validate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "plan/calibrate.h"

namespace tessera::plan {
namespace {

const std::vector<PublishedRun>& published() {
  static const std::vector<PublishedRun> runs = [] {
    std::ifstream file(std::string(TESSERA_TESTS_DIR) + "/../data/published_runs.csv");
    std::stringstream text;
    text << file.rdbuf();
    return parse_published_runs(text.str()).runs;
  }();
  return runs;
}

const Validation& validation() {
  static const Validation all = validate(published(), default_constants());
  return all;
}

const ValidationGroup& group(const std::string& name) {
  const auto& groups = validation().groups;
  const auto found = std::find_if(groups.begin(), groups.end(),
                                  [&](const auto& each) { return each.name == name; });
  EXPECT_NE(found, groups.end()) << name;
  return *found;
}

TEST(Validation, PredictsHeldOutRunsOnSeveralNodesWithinEightPerCent) {
  const ValidationGroup& held_out = group("dense 16-bit, multi-node, held out");
  EXPECT_GT(held_out.time.count, 100);
  EXPECT_LE(held_out.time.mean_abs_error, 0.08);
  EXPECT_LE(held_out.time.mean_abs_error, held_out.baseline.mean_abs_error / 2);
}

TEST(Validation, PredictsTheHeadlineRuns) {
  EXPECT_EQ(group("sc21t1").time.count, 10);
  EXPECT_LE(group("sc21t1").time.worst_abs_error, 0.08);
  EXPECT_EQ(group("kort").time.count, 8);
  EXPECT_LE(group("kort").time.mean_abs_error, 0.04);
  EXPECT_LE(group("experts, held out").time.mean_abs_error, 0.20);
}

TEST(Validation, PredictsMemoryAndCallsNothingFittingThatDidNotFit) {
  EXPECT_LE(group("all").memory.mean_abs_error, 0.10);
  EXPECT_GE(validation().out_of_memory_rows, 3);
  EXPECT_EQ(validation().wrongly_fitting, 0);
}

TEST(Validation, CountsRunsThatAreCalledTooLarge) {
  int64_t ran = 0, too_large = 0;
  for (const ValidatedRow& row : validation().rows) {
    if (!row.has_time() || row.published->out_of_memory() || row.published->recompute.empty()) {
      continue;
    }
    ++ran;
    too_large += row.fits ? 0 : 1;
  }
  EXPECT_GT(ran, 100);
  EXPECT_EQ(validation().ran_rows, ran);
  EXPECT_EQ(validation().wrongly_too_large, too_large);
}

TEST(Validation, HasNoBaselineThatIsNoNumber) {
  std::vector<PublishedRun> runs = published();
  for (PublishedRun& run : runs) {
    if (run.step_time_s && is_fitted(run.id)) run.step_time_s = -1;  // its logarithm is none
  }
  for (const ValidationGroup& each : validate(runs, default_constants()).groups) {
    EXPECT_TRUE(std::isfinite(each.baseline.mean_abs_error)) << each.name;
  }
}

TEST(Validation, LeavesOutNoRowWithoutAReason) {
  EXPECT_EQ(validation().rows.size(), published().size());
  for (const ValidatedRow& row : validation().rows) {
    EXPECT_NE(row.run.has_value(), !row.skipped.empty()) << row.published->id;
  }
}

TEST(Validation, SplitsRowsByTheirIdsAlone) {
  const auto fitted = std::count_if(published().begin(), published().end(),
                                    [](const PublishedRun& run) { return is_fitted(run.id); });
  EXPECT_NEAR(static_cast<double>(fitted) / static_cast<double>(published().size()), 0.4, 0.05);
}

/// What each of the model's parts is worth: without it the held-out error grows.
TEST(Validation, NoticesConstantsThatAreWrong) {
  const double right = group("dense 16-bit, multi-node, held out").time.mean_abs_error;
  for (const auto& [name, factor] : {std::pair<const char*, double>{"ampere.products", 0.8},
                                     {"ampere.inter", 0.2},
                                     {"hopper.memory", 0.3},
                                     {"host_s", 6}}) {
    Constants wrong = default_constants();
    for (const ConstantField& field : fields(wrong)) {
      if (field.name == name) *field.value *= factor;
    }
    EXPECT_GT(validate(published(), wrong).groups.front().time.mean_abs_error, right + 0.003)
        << name;
  }
}

TEST(Calibration, FindsConstantsAgainThatMadeTheRows) {
  // Rows whose step times are the model's own, with other constants than the fit starts from.
  Constants truth = prior_constants();
  ASSERT_TRUE(set_constant(truth, "ampere.products", 0.66));
  ASSERT_TRUE(set_constant(truth, "ampere.intra", 0.55));
  std::vector<PublishedRun> runs;
  for (PublishedRun run : published()) {
    const ModelledRun model = modelled(run);
    if (run.group() != "sc21t1" || !model.run) continue;
    run.step_time_s = estimate(*model.run, truth).time.step_s;
    runs.push_back(run);
  }
  CalibrationOptions options;
  options.all_rows = true;
  options.rounds = 20;
  const Calibration fit = calibrate(runs, prior_constants(), options);
  EXPECT_EQ(fit.used.size(), 10U);
  EXPECT_LT(fit.objective_after, 0.1 * fit.objective_before);
  const Validation after = validate(runs, fit.constants);
  EXPECT_LT(after.groups.back().time.mean_abs_error, 0.01);
}

}  // namespace
}  // namespace tessera::plan
