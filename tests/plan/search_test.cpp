#include "plan/search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <thread>

#include "plan/search_cell.h"

namespace tessera::plan {
namespace {

constexpr double kNone = 0;

SearchSpace space_of(const char* model, int64_t devices, int64_t global_batch, int64_t seq_len) {
  SearchSpace space;
  space.model = *find_model(model);
  space.cluster = *find_cluster("a100-80g");
  space.stack = find_stack("generic");
  space.constants = default_constants();
  space.devices = devices;
  space.recipe.global_batch = global_batch;
  space.recipe.seq_len = seq_len;
  return space;
}

void only(SearchSpace& space, Knob knob, std::vector<int64_t> values) {
  space.only[static_cast<size_t>(knob)] = std::move(values);
}

/// Few enough layouts to simulate every one.
SearchSpace small_space() {
  SearchSpace space = space_of("llama-2-7b", 16, 32, 4096);
  only(space, Knob::tp, {1, 2, 4, 8});
  only(space, Knob::cp, {1, 2});
  only(space, Knob::pp, {1, 2, 4, 8});
  only(space, Knob::v, {1, 2, 3});
  only(space, Knob::micro_batch, {1, 2, 4, 8});
  only(space, Knob::shard, {0, 4});
  return space;
}

/// Where what fits is decided by a few per cent: the fastest layout nearly fills its device, and
/// has other states than the first sharding of its cell. Recomputation is free, as ZeRO is.
SearchSpace tight_space() {
  SearchSpace space = space_of("llama-2-7b", 8, 256, 4096);
  space.cluster = *find_cluster("a100-40g");
  only(space, Knob::tp, {1, 2});
  only(space, Knob::cp, {1, 2});
  only(space, Knob::pp, {1, 2});
  only(space, Knob::v, {1, 2});
  only(space, Knob::micro_batch, {1, 2, 4});
  only(space, Knob::shard, {0, 4});
  return space;
}

/// The same with larger shares: 70 billion parameters on 32 devices.
SearchSpace large_tight_space() {
  SearchSpace space = space_of("llama-3-70b", 32, 256, 4096);
  space.cluster = *find_cluster("h100-80g");
  only(space, Knob::tp, {1, 2, 4, 8});
  only(space, Knob::cp, {1});
  only(space, Knob::pp, {1, 2, 4});
  only(space, Knob::v, {1, 2});
  only(space, Knob::micro_batch, {1, 2});
  only(space, Knob::shard, {0, 4});
  return space;
}

/// Calls `visit` for the legal layouts of one of these spaces: nested loops, nothing shared with a
/// search.
template <class Visit>
void every_layout(const SearchSpace& space, const Visit& visit) {
  const auto each = [](const std::vector<int64_t>& values, const auto& body) {
    for (const int64_t value : values) body(value);
  };
  Layout layout;
  const auto shardings = [&] {
    for (layout.zero = 0; layout.zero <= 3; ++layout.zero) {
      if (layout.zero > 0 && layout.dp * layout.cp == 1) continue;
      for (const int64_t shard : {0, 4}) {
        if (layout.zero == 0 && shard > 0) continue;
        if (shard == layout.dp * layout.cp) continue;  // all, which is 0
        layout.shard = shard;
        if (mistakes(space.model, space.recipe, layout).empty()) visit(layout);
      }
    }
    layout.zero = layout.shard = 0;
  };
  const auto flavors = [&] {
    for (const bool parallel : {false, true}) {
      if (parallel && layout.tp == 1) continue;
      layout.sequence_parallel = parallel;
      for (const auto recompute :
           {spec::Recompute::none, spec::Recompute::selective, spec::Recompute::full}) {
        layout.recompute = recompute;
        each(space.values(Knob::micro_batch), [&](int64_t size) {
          layout.micro_batch = size;
          shardings();
        });
      }
    }
  };
  each(space.values(Knob::tp), [&](int64_t tp) {
    each(space.values(Knob::cp), [&](int64_t cp) {
      each(space.values(Knob::pp), [&](int64_t pp) {
        if (space.devices % (tp * cp * pp) != 0) return;
        layout = Layout{};
        layout.tp = tp;
        layout.cp = cp;
        layout.pp = pp;
        layout.dp = space.devices / (tp * cp * pp);
        for (const spec::ScheduleKind kind : spec::kNamedSchedules) {
          layout.schedule = kind;
          each(space.values(Knob::v), [&](int64_t v) {
            layout.v = v;
            if (pp == 1 && kind != spec::ScheduleKind::one_f_one_b) return;
            // With interleaving a rank has two stages or more, as Megatron has it.
            if (kind == spec::ScheduleKind::interleaved && v == 1) return;
            flavors();
          });
        }
      });
    });
  });
}

struct Brute {
  std::vector<double> steps;  ///< of what fits, ascending
  int64_t legal = 0, too_large = 0;
  std::array<std::map<int64_t, double>, kNumKnobs> best;
};

Brute brute_force(const SearchSpace& space) {
  Brute all;
  every_layout(space, [&](const Layout& layout) {
    ++all.legal;
    const Estimate found = estimate(space.at(layout), space.constants);
    if (!found.fits) {
      ++all.too_large;
      return;
    }
    all.steps.push_back(found.time.step_s);
    for (size_t knob = 0; knob < kNumKnobs; ++knob) {
      auto& values = all.best[knob];
      const int64_t value = value_of(layout, static_cast<Knob>(knob));
      const auto known = values.find(value);
      if (known == values.end() || found.time.step_s < known->second) {
        values[value] = found.time.step_s;
      }
    }
  });
  std::sort(all.steps.begin(), all.steps.end());
  return all;
}

/// A space with everything that simulating all of it finds.
struct Known {
  SearchSpace space;
  Brute brute;
};

const std::vector<Known>& known_spaces() {
  static const std::vector<Known> all = [] {
    std::vector<Known> known;
    for (const SearchSpace& space : {small_space(), tight_space(), large_tight_space()}) {
      known.push_back({space, brute_force(space)});
    }
    return known;
  }();
  return all;
}

class SearchOfKnownSpace : public testing::TestWithParam<size_t> {
 protected:
  const SearchSpace& space() const { return known_spaces()[GetParam()].space; }
  const Brute& brute() const { return known_spaces()[GetParam()].brute; }
};
INSTANTIATE_TEST_SUITE_P(SmallAndTight, SearchOfKnownSpace, testing::Values(0, 1, 2));

TEST_P(SearchOfKnownSpace, FindsWhatSimulatingEveryLayoutFinds) {
  const SearchResult result = search(space());
  EXPECT_EQ(result.candidates, brute().legal);
  ASSERT_EQ(result.best.size(), 10u);
  EXPECT_EQ(result.best.front().estimate.time.step_s, brute().steps.front());
  std::set<double> steps(brute().steps.begin(), brute().steps.end());
  for (const Found& found : result.best) {
    EXPECT_TRUE(steps.count(found.estimate.time.step_s) > 0) << to_string(found.layout);
  }
  // No time between the first and the last returned is left out.
  const double last = result.best.back().estimate.time.step_s;
  std::set<double> returned;
  for (const Found& found : result.best) returned.insert(found.estimate.time.step_s);
  for (const double step : brute().steps) {
    if (step < last) {
      EXPECT_TRUE(returned.count(step) > 0) << step;
    }
  }
}

TEST_P(SearchOfKnownSpace, FindsTheBestOfEveryValueOfEveryKnob) {
  const SearchResult result = search(space());
  EXPECT_GE(result.sensitivity.size(), 5U);
  for (const Sensitivity& sensitivity : result.sensitivity) {
    const auto& best = brute().best[static_cast<size_t>(sensitivity.knob)];
    for (const KnobValue& line : sensitivity.values) {
      const auto found = best.find(line.value);
      EXPECT_EQ(line.best_s, found == best.end() ? kNone : found->second)
          << name_of(sensitivity.knob) << ' ' << line.value;
    }
  }
}

TEST_P(SearchOfKnownSpace, CountsEveryLayoutOnce) {
  const SearchResult result = search(space());
  int64_t counted = static_cast<int64_t>(result.best.size()), too_large = 0;
  for (const Rejected& rejected : result.rejected) {
    EXPECT_GT(rejected.count, 0) << name_of(rejected.reason);
    EXPECT_FALSE(rejected.because.empty());
    if (rejected.reason != Rejection::illegal) counted += rejected.count;
    if (rejected.reason == Rejection::memory) too_large = rejected.count;
    for (const Found& found : result.best) {
      EXPECT_NE(to_string(found.layout), to_string(rejected.example));
    }
  }
  EXPECT_EQ(counted, result.candidates);
  // What could not be faster is not asked whether it fits.
  EXPECT_GT(too_large, 0);
  EXPECT_LE(too_large, brute().too_large);
}

TEST(Search, WeighsTheBytesOfTheLayoutItself) {
  SearchSpace experts = space_of("mixtral-8x7b", 16, 32, 4096);
  only(experts, Knob::cp, {1});
  only(experts, Knob::micro_batch, {1, 4});
  int64_t weighed = 0;
  for (const SearchSpace& space : {tight_space(), large_tight_space(), experts}) {
    std::vector<Rejected> illegal;
    for (const Cell& cell : make_cells(space, illegal)) {
      CellSearch search(space, cell);
      search.prepare();
      for (size_t variant = 0; variant < cell.num_variants(); ++variant) {
        const auto all = search.weigh(variant, Incumbents(1));
        for (size_t sharding = 0; sharding < all.size(); ++sharding, ++weighed) {
          const Layout layout = cell.layout(variant, sharding);
          const std::vector<Memory> ranks = memory_of_ranks(space.at(layout));
          const double bytes = ranks[worst_rank(ranks)].total();
          ASSERT_EQ(all[sharding].bytes, bytes) << to_string(layout);
          const auto room = static_cast<double>(space.cluster.device.memory_bytes);
          EXPECT_TRUE(search.has_room(sharding) || bytes > room) << to_string(layout);
        }
      }
    }
  }
  EXPECT_GT(weighed, 1000);
}

/// Threads that take whatever is next.
void on_threads(size_t count, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (size_t item = next++; item < count; item = next++) work(item);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void backwards(size_t count, const std::function<void(size_t)>& work) {
  for (size_t i = count; i > 0; --i) work(i - 1);
}

/// Everything in a result, its times to the bit.
std::string fingerprint(const SearchResult& result) {
  std::string text = std::to_string(result.candidates) + ' ' + std::to_string(result.timed) + '\n';
  const auto bits = [](double number) {
    uint64_t word = 0;
    static_assert(sizeof word == sizeof number);
    std::memcpy(&word, &number, sizeof word);
    return std::to_string(word) + ' ';
  };
  for (const Found& found : result.best) {
    text += to_string(found.layout) + ' ' + bits(found.estimate.time.step_s);
    for (const TermDifference& term : found.against) text += term.term + bits(term.seconds);
  }
  for (const Rejected& rejected : result.rejected) {
    text += std::string(name_of(rejected.reason)) + std::to_string(rejected.count) +
            to_string(rejected.example) + rejected.because + '\n';
  }
  for (const Sensitivity& sensitivity : result.sensitivity) {
    for (const KnobValue& line : sensitivity.values) {
      text += std::to_string(line.value) + to_string(line.best) + bits(line.best_s) +
              bits(line.held_s) + line.reason + '\n';
    }
  }
  return text;
}

TEST(Search, GivesTheSameBitsInWhateverOrderItsWorkIsDone) {
  const SearchSpace space = space_of("llama-2-70b", 256, 512, 4096);
  const std::string expected = fingerprint(search(space));
  EXPECT_EQ(fingerprint(search(space, backwards)), expected);
  EXPECT_EQ(fingerprint(search(space, on_threads)), expected);
}

TEST(Search, ReturnsLayoutsThatAreLegalAndFit) {
  for (const char* model : {"llama-2-7b", "llama-2-70b", "mixtral-8x7b"}) {
    const SearchSpace space = space_of(model, 64, 256, 4096);
    const SearchResult result = search(space);
    ASSERT_FALSE(result.best.empty()) << model;
    for (const Found& found : result.best) {
      const std::string text = to_string(found.layout);
      EXPECT_TRUE(mistakes(space.model, space.recipe, found.layout).empty()) << text;
      EXPECT_TRUE(found.estimate.fits) << text;
      EXPECT_EQ(found.layout.devices(), 64) << text;
    }
  }
}

TEST(Search, KeepsToTheValuesThatItIsGiven) {
  SearchSpace space = space_of("llama-2-7b", 64, 256, 4096);
  only(space, Knob::tp, {4});
  only(space, Knob::zero, {1, 2});
  only(space, Knob::schedule, {static_cast<int64_t>(spec::ScheduleKind::interleaved)});
  const SearchResult result = search(space);
  ASSERT_FALSE(result.best.empty());
  for (const Found& found : result.best) {
    EXPECT_EQ(found.layout.tp, 4);
    EXPECT_TRUE(found.layout.zero == 1 || found.layout.zero == 2);
    EXPECT_EQ(found.layout.schedule, spec::ScheduleKind::interleaved);
  }
}

TEST(Search, SaysTheLeastThatIsNeededWhereNothingFits) {
  SearchSpace space = space_of("llama-2-70b", 4, 64, 4096);
  const SearchResult result = search(space);
  EXPECT_TRUE(result.best.empty());
  double least = 1e300;
  int64_t count = 0;
  for (const Rejected& rejected : result.rejected) {
    if (rejected.reason != Rejection::memory) continue;
    count = rejected.count;
    const std::vector<Memory> ranks = memory_of_ranks(space.at(rejected.example));
    least = ranks[worst_rank(ranks)].total();
  }
  EXPECT_EQ(count, result.candidates);
  // 70e9 parameters at 16 bytes over four devices, and what is gathered or kept besides.
  EXPECT_GT(least, 280e9);
  EXPECT_LT(least, 500e9);
}

TEST(Search, SaysWhatIsIllegalOnceForEachKnob) {
  const SearchResult result = search(space_of("gpt2-124m", 48, 64, 1024));
  std::set<std::string> keys;
  for (const Rejected& rejected : result.rejected) {
    if (rejected.reason != Rejection::illegal) continue;
    EXPECT_TRUE(keys.insert(rejected.what).second) << rejected.what;
    EXPECT_NE(rejected.because.find("nearest"), std::string::npos) << rejected.because;
  }
  EXPECT_TRUE(keys.count("tp") > 0);  // 12 heads do not divide by 8
}

TEST(Search, DifferencesAddUpToThatOfTheSteps) {
  StepTime one, other;
  one.compute_s = 5, one.tp_exposed_s = 1, one.pp_bubble_s = 2, one.step_s = 7;
  other.compute_s = 6, other.tp_exposed_s = 3, other.dp_exposed_s = 0.5, other.step_s = 6.5;
  double sum = 0;
  for (const TermDifference& term : differences(one, other)) sum += term.seconds;
  EXPECT_DOUBLE_EQ(sum, 0.5);
  EXPECT_EQ(std::abs(differences(one, other).front().seconds), 2);
}

TEST(Search, CutsALargeModelInsideItsNodesAndAcrossThemAsMegatronFound) {
  // Narayanan et al. 2021 (SC'21), figure 13: 162 billion parameters on 64 A100 with tp · pp = 64,
  // micro-batch 1, full recomputation: (8, 8) is the fastest.
  SearchSpace space = space_of("gpt2-124m", 64, 128, 2048);
  space.stack = find_stack("megatron-lm-2021");
  spec::ModelConfig& config = space.model.dense;
  config.num_hidden_layers = 32;
  config.hidden_size = 20480;
  config.intermediate_size = 4 * 20480;
  config.num_attention_heads = config.num_key_value_heads = 128;
  config.head_dim = 160;
  config.vocab_size = 51200;
  config.max_position_embeddings = 2048;
  only(space, Knob::dp, {1});
  only(space, Knob::cp, {1});
  only(space, Knob::schedule, {static_cast<int64_t>(spec::ScheduleKind::one_f_one_b)});
  only(space, Knob::micro_batch, {1});
  only(space, Knob::recompute, {static_cast<int64_t>(spec::Recompute::full)});
  only(space, Knob::sequence_parallel, {0});
  const SearchResult result = search(space);
  ASSERT_FALSE(result.best.empty());
  EXPECT_EQ(result.best.front().layout.tp, 8) << to_string(result.best.front().layout);
  EXPECT_EQ(result.best.front().layout.pp, 8);
}

}  // namespace
}  // namespace tessera::plan
