#include "model/parameters.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "account/model_part.h"
#include "model/tiny_model.h"

namespace tessera::model::testing {
namespace {

using account::Role;

/// Two layers of width 16: unit 1 is the first.
struct Bound {
  account::ParameterTable table = account::parameter_table(tiny_config());
  Parameters parameters{table};
  core::MemoryLedger ledger;
  core::Tensor weights{
      ledger, core::Category::weights, core::DType::f32, {table.units[1].elements + 5}};
};

TEST(Parameters, AreViewsIntoTheirUnitsBuffer) {
  Bound bound;
  bound.parameters.bind_weights(1, {}, bound.weights.view());
  const account::Parameter* entry = bound.table.find(1, Role::down_weight);
  const BoundParameter down = bound.parameters.get(1, Role::down_weight);
  EXPECT_EQ(down.value.as<float>(), bound.weights.view().as<float>() + entry->offset);
  EXPECT_EQ(down.value.shape, (core::Shape{16, 64}));
  EXPECT_FALSE(down.grad);
}

TEST(Parameters, AreEmptyWhereTheTableHasNoneOrNothingIsBound) {
  Bound bound;
  EXPECT_FALSE(bound.parameters.get(1, Role::down_weight).value);
  bound.parameters.bind_weights(1, {}, bound.weights.view());
  EXPECT_FALSE(bound.parameters.get(1, Role::token_embedding).value);
  bound.parameters.bind_weights(1, {}, {});
  EXPECT_FALSE(bound.parameters.get(1, Role::down_weight).value);
}

TEST(Parameters, FuseNeighboursIntoOneMatrix) {
  Bound bound;
  bound.parameters.bind_gradients(1, bound.weights.view());
  const View fused = bound.parameters.get_fused(1, Role::q_weight, 3).grad;
  EXPECT_EQ(fused.shape, (core::Shape{48, 16}));
  EXPECT_EQ(fused.as<float>() + 2 * 16 * 16,
            bound.parameters.get(1, Role::v_weight).grad.as<float>());
  EXPECT_EQ(bound.parameters.get_fused(1, Role::q_bias, 3).grad.shape, (core::Shape{48}));
}

TEST(Parameters, RefuseABufferSmallerThanTheUnit) {
  Bound bound;
  const View small = bound.weights.view().slice(0, {bound.table.units[1].elements - 1});
  EXPECT_THROW(bound.parameters.bind_weights(1, {}, small), core::InternalError);
  EXPECT_THROW(bound.parameters.bind_gradients(1, small), core::InternalError);
}

std::vector<float> initial(int parameter, int64_t first, int64_t count, uint64_t seed) {
  const account::ParameterTable table = account::parameter_table(tiny_config());
  std::vector<float> out(static_cast<size_t>(count), -7.0f);
  initialise({out.data(), core::DType::f32, {count}}, table, parameter, first, seed);
  return out;
}

TEST(Initialise, GivesASliceWhatTheWholeHasThere) {
  const account::ParameterTable table = account::parameter_table(tiny_config());
  for (size_t p = 0; p < table.parameters.size(); ++p) {
    const auto index = static_cast<int>(p);
    const int64_t n = table.parameters[p].elements();
    const std::vector<float> whole = initial(index, 0, n, 3);
    for (const int64_t first : {int64_t{0}, int64_t{1}, n / 3, n - 1}) {
      const int64_t count = std::min<int64_t>(n - first, 13);
      const std::vector<float> expected(whole.begin() + first, whole.begin() + first + count);
      EXPECT_EQ(initial(index, first, count, 3), expected) << table.parameters[p].name;
    }
  }
}

/// The table of the second of two ranks that split rows, columns and the vocabulary.
account::ParameterTable second_of_two() {
  account::ModelPart part;
  part.tp = 2;
  part.tp_rank = 1;
  part.stages = {{0, {0, tiny_config().num_hidden_layers}}};
  return account::parameter_table(tiny_config(), {}, part);
}

TEST(Initialise, GivesAPartTheValuesOfTheWholeAndPaddingZeros) {
  const account::ParameterTable table = second_of_two();
  int64_t padding = 0;
  for (size_t p = 0; p < table.parameters.size(); ++p) {
    const account::Parameter& entry = table.parameters[p];
    const auto index = static_cast<int>(p);
    const std::vector<float> whole = initial(index, 0, entry.whole.elements(), 3);
    std::vector<float> expected(static_cast<size_t>(entry.elements()), 0.0f);
    account::for_each_run(
        entry, 0, entry.elements(), [&](int64_t in_whole, int64_t in_part, int64_t count) {
          std::copy_n(whole.begin() + in_whole, count, expected.begin() + in_part);
        });
    const int64_t first = entry.elements() / 3;
    std::vector<float> values(expected.size() - static_cast<size_t>(first), -7.0f);
    initialise({values.data(), core::DType::f32, {entry.elements() - first}}, table, index, first,
               3);
    expected.erase(expected.begin(), expected.begin() + first);
    EXPECT_EQ(values, expected) << entry.name;
    padding += entry.padding;
  }
  EXPECT_GT(padding, 0);
}

TEST(Initialise, DiffersBetweenSeedsAndParameters) {
  const account::ParameterTable table = account::parameter_table(tiny_config());
  std::vector<int> normal;
  for (size_t p = 0; p < table.parameters.size(); ++p) {
    if (table.parameters[p].init == account::Init::normal) normal.push_back(static_cast<int>(p));
  }
  ASSERT_GT(normal.size(), 2u);
  EXPECT_NE(initial(normal[0], 0, 16, 3), initial(normal[0], 0, 16, 4));
  EXPECT_NE(initial(normal[1], 0, 16, 3)[0] / table.parameters[normal[1]].init_std,
            initial(normal[2], 0, 16, 3)[0] / table.parameters[normal[2]].init_std);
}

TEST(Initialise, DrawsWithTheTablesDeviationAndFillsTheRest) {
  const account::ParameterTable table = account::parameter_table(tiny_config());
  for (size_t p = 0; p < table.parameters.size(); ++p) {
    const account::Parameter& entry = table.parameters[p];
    const std::vector<float> values = initial(static_cast<int>(p), 0, entry.elements(), 3);
    if (entry.init != account::Init::normal) {
      const float fill = entry.init == account::Init::ones ? 1.0f : 0.0f;
      EXPECT_EQ(std::count(values.begin(), values.end(), fill), entry.elements()) << entry.name;
      continue;
    }
    double squares = 0;
    for (const float value : values) squares += double{value} * value;
    const double deviation = std::sqrt(squares / static_cast<double>(values.size()));
    // The sample deviation of n draws spreads by 1 / sqrt(2 n): five of those.
    const double spread = 5 / std::sqrt(2.0 * static_cast<double>(values.size()));
    EXPECT_NEAR(deviation / entry.init_std, 1, spread) << entry.name;
  }
}

}  // namespace
}  // namespace tessera::model::testing
