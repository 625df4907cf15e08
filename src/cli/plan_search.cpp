#include "cli/plan_search.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <exception>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "cli/plan_report.h"
#include "cli/plan_search_report.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "plan/advice.h"
#include "plan/emit.h"
#include "plan/explain.h"
#include "train/run_folder.h"

namespace tessera::cli {

void PlanSearchOptions::add_to(CLI::App& verb) {
  constexpr const char* kSearch = "Search";
  verb.add_flag("--search", search,
                "Find the fastest layouts that fit; what flags of the layout say is kept to")
      ->group(kSearch);
  verb.add_option("--top", top, "Layouts to show (10)")
      ->check(CLI::Range(1, 1000))
      ->type_name("N")
      ->group(kSearch);
  verb.add_flag("--advise", advise,
                "Ask an experienced person's questions, and hold the answer against a search's")
      ->group(kSearch);
  verb.add_option("--out", out, "Write the layout, with --search the best, for tessera train")
      ->type_name("FILE")
      ->group(kSearch);
  verb.add_option("--emit", emit, "Print the layout for megatron, deepspeed or torchtitan, no more")
      ->type_name("SYSTEM")
      ->group(kSearch);
}

namespace {

/// All cores; what a worker throws comes out here.
void on_all_cores(size_t count, const std::function<void(size_t)>& work) {
  const size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const size_t num_workers = std::min(cores, count);
  if (num_workers <= 1) return plan::in_order(count, work);
  std::atomic<size_t> next{0};
  std::vector<std::exception_ptr> failures(num_workers);
  std::vector<std::thread> workers;
  for (size_t i = 0; i < num_workers; ++i) {
    workers.emplace_back([&, i] {
      try {
        for (size_t item = next++; item < count; item = next++) work(item);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

constexpr std::array<std::pair<const char*, plan::Knob>, plan::kNumKnobs> kPinned = {
    {{"tp", plan::Knob::tp},
     {"sp", plan::Knob::sequence_parallel},
     {"cp", plan::Knob::cp},
     {"pp", plan::Knob::pp},
     {"schedule", plan::Knob::schedule},
     {"virtual-stages", plan::Knob::v},
     {"dp", plan::Knob::dp},
     {"ep", plan::Knob::ep},
     {"zero", plan::Knob::zero},
     {"shard", plan::Knob::shard},
     {"micro-batch", plan::Knob::micro_batch},
     {"recompute", plan::Knob::recompute}}};

/// The space that flags leave open.
plan::SearchSpace space_of(const PlanRequest& request, const PlanSearchOptions& options) {
  if (request.parameters > 0) {
    throw core::ConfigError("--params tells no shape, and a search cuts shapes: name a --model");
  }
  for (const char* flag : {"accumulate", "layers-per-stage"}) {
    if (request.says(flag)) {
      throw core::ConfigError(fmt::format(
          "--{} belongs to one layout, and --search goes through many: leave it out", flag));
    }
  }
  plan::SearchSpace space;
  space.model = request.run.model;
  space.recipe = request.run.recipe;
  space.cluster = request.run.cluster;
  space.stack = request.run.stack;
  space.constants = request.constants;
  space.devices = request.gpus;
  space.top = static_cast<size_t>(options.top);
  for (const auto& [flag, knob] : kPinned) {
    if (!request.says(flag)) continue;
    if (options.advise) {
      throw core::ConfigError(fmt::format(
          "--{} decides what --advise asks about: leave it out, or ask --search", flag));
    }
    space.only[static_cast<size_t>(knob)] = {plan::value_of(request.run.layout, knob)};
  }
  return space;
}

void write_layout(const plan::Case& run, const std::string& path) {
  train::write_file_atomically(path, plan::emit(run, plan::System::tessera));
}

plan::System system_of(const std::string& name) {
  const std::optional<plan::System> system = plan::find_system(name);
  if (system) return *system;
  throw core::ConfigError(
      "--emit " + name + " is none of megatron, deepspeed and torchtitan" +
      (name == "tessera" ? "; a layout for this engine is written by --out" : ""));
}

void print_emitted(const plan::Case& run, const std::string& system, bool json) {
  const std::string text = plan::emit(run, system_of(system));
  if (!json) {
    fmt::print("{}", text);
    return;
  }
  const nlohmann::ordered_json report = {
      {"system", system}, {"layout", plan::to_string(run.layout)}, {"text", text}};
  fmt::print("{}\n", report.dump(2));
}

/// The layout that flags say, written and no more.
int write_given(const PlanArgs& args, const PlanSearchOptions& options, bool json) {
  const PlanRequest request = args.read();
  if (request.parameters > 0) {
    throw core::ConfigError("--params tells no shape to write a layout for: name a --model");
  }
  if (!options.out.empty()) write_layout(request.run, options.out);
  if (!options.emit.empty()) print_emitted(request.run, options.emit, json);
  if (options.emit.empty() && json) {
    const nlohmann::ordered_json report = {{"out", options.out},
                                           {"layout", plan::to_string(request.run.layout)}};
    fmt::print("{}\n", report.dump(2));
  }
  const std::vector<plan::Memory> ranks = plan::memory_of_ranks(request.run);
  const bool fits = ranks[plan::worst_rank(ranks)].total() <=
                    static_cast<double>(request.run.cluster.device.memory_bytes);
  if (!fits) fmt::print(stderr, "tessera: this layout does not fit in memory\n");
  return fits ? kDone : kDoesNotFit;
}

/// Nothing legal in the space: the user's flags say so.
[[noreturn]] void refuse(const plan::SearchSpace& space, const plan::SearchResult& result) {
  std::string why = "no layout is legal with these flags";
  if (result.rejected.empty()) {
    why += fmt::format(": tp, cp and pp have to divide the {} GPU{}, and dp is what they leave",
                       space.devices, space.devices == 1 ? "" : "s");
  }
  for (const plan::Rejected& rejected : result.rejected) {
    why += fmt::format("\n  {} ({} ways to cut the devices)", rejected.because, rejected.count);
  }
  throw core::ConfigError(why);
}

/// What --explain can be asked of.
void check_explain(const PlanSearchOptions& options) {
  if (!options.emit.empty() || !options.search) {
    throw core::ConfigError(
        "--explain is of one printed plan: of the layout that flags say, or with --search of the "
        "fastest; leave it out beside " +
        std::string(options.emit.empty() ? options.advise ? "--advise alone" : "--out" : "--emit"));
  }
}

/// Why the fastest layout's numbers are what they are.
PlanNotes notes_of_best(const plan::SearchSpace& space, const plan::Found& best) {
  const plan::Case run = space.at(best.layout);
  PlanNotes notes;
  notes.why = plan::explain(run, space.constants, best.estimate);
  notes.not_modelled = plan::not_modelled(run);
  return notes;
}

}  // namespace

int plan_search(const PlanArgs& args, const PlanSearchOptions& options, const PlanOutput& output) {
  const bool json = output.json;
  if (!options.emit.empty()) system_of(options.emit);
  if (output.explain) check_explain(options);
  if (!options.search && !options.advise) return write_given(args, options, json);
  const PlanRequest request = args.read(LayoutFlags::open);
  const plan::SearchSpace space = space_of(request, options);
  const auto begin = std::chrono::steady_clock::now();
  const plan::SearchResult result = plan::search(space, on_all_cores);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (result.candidates == 0) refuse(space, result);

  const bool found = !result.best.empty();
  if (found && !options.out.empty()) {
    write_layout(space.at(result.best.front().layout), options.out);
  }
  if (found && !options.emit.empty()) {
    print_emitted(space.at(result.best.front().layout), options.emit, json);
    return kDone;
  }
  if (json) {
    nlohmann::ordered_json report = search_json(space, result, took.count());
    if (options.advise) report["advice"] = advice_json(space, plan::advise(space, result));
    if (output.explain && found) {
      const PlanNotes notes = notes_of_best(space, result.best.front());
      report["why"] = reasons_json(notes.why);
      report["not_modelled"] = notes.not_modelled;
    }
    fmt::print("{}\n", report.dump(2));
    return found ? kDone : kDoesNotFit;
  }
  if (options.advise) fmt::print("{}", advice_text(space, result, plan::advise(space, result)));
  if (options.search) {
    fmt::print("{}{}", options.advise ? "\n" : "", search_text(space, result, took.count()));
  }
  if (found && !options.out.empty()) {
    fmt::print("the fastest layout is written to {}\n", options.out);
  }
  if (found && output.explain) {
    const plan::Found& best = result.best.front();
    fmt::print("\nwhy, of {}\n{}", plan::to_string(best.layout),
               notes_text(notes_of_best(space, best)));
  }
  return found ? kDone : kDoesNotFit;
}

}  // namespace tessera::cli
