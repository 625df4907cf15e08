// The planner's full search: which of half a million layouts of llama-3-405b on 16,384 devices is
// the fastest. Bar: under one second on two cores.

#include <benchmark/benchmark.h>

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "plan/search.h"

namespace {

using tessera::plan::SearchResult;
using tessera::plan::SearchSpace;

SearchSpace largest_llama() {
  SearchSpace space;
  space.model = *tessera::plan::find_model("llama-3-405b");
  space.cluster = *tessera::plan::find_cluster("h100-80g");
  space.stack = tessera::plan::find_stack("generic");
  space.constants = tessera::plan::default_constants();
  space.devices = 16384;
  space.recipe.global_batch = 2048;
  space.recipe.seq_len = 8192;
  return space;
}

void full_search(benchmark::State& state) {
  const SearchSpace space = largest_llama();
  const auto num_threads = state.range(0);
  const auto spread = [&](size_t count, const std::function<void(size_t)>& work) {
    std::atomic<size_t> next{0};
    std::vector<std::thread> threads;
    for (int64_t i = 0; i < num_threads; ++i) {
      threads.emplace_back([&] {
        for (size_t item = next++; item < count; item = next++) work(item);
      });
    }
    for (std::thread& thread : threads) thread.join();
  };
  SearchResult result;
  for (auto _ : state) result = tessera::plan::search(space, spread);
  state.counters["candidates"] = static_cast<double>(result.candidates);
  state.counters["simulated"] = static_cast<double>(result.timed);
}
BENCHMARK(full_search)
    ->Arg(1)
    ->Arg(2)
    ->ArgName("threads")
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
