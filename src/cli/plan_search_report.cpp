#include "cli/plan_search_report.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/plan_report.h"
#include "plan/not_run_yet.h"
#include "plan/text.h"

namespace tessera::cli {

namespace {

using Json = nlohmann::ordered_json;
using plan::Found;
using plan::Knob;
using plan::Rejected;
using plan::Rejection;
using plan::SearchResult;
using plan::SearchSpace;

std::string title(const SearchSpace& space) {
  return fmt::format("{} on {} x {}, {} sequences of {} tokens\n", space.model.name, space.devices,
                     space.cluster.device.name, space.recipe.global_batch, space.recipe.seq_len);
}

double bytes_of(const Found& found) {
  return found.estimate.memory[found.estimate.worst_rank].total();
}

/// "pp bubble" of "pp_bubble_s".
std::string words(std::string term) {
  constexpr std::pair<const char*, const char*> kWords[] = {
      {"compute_s", "compute"},     {"tp_exposed_s", "tp waits"}, {"cp_exposed_s", "cp waits"},
      {"ep_exposed_s", "ep waits"}, {"dp_exposed_s", "dp waits"}, {"pp_bubble_s", "pp bubble"},
      {"optimizer_s", "optimizer"}, {"overhead_s", "overhead"}};
  for (const auto& [key, word] : kWords) {
    if (term == key) return word;
  }
  return term;
}

std::string terms_text(const std::vector<plan::TermDifference>& terms) {
  std::string text;
  for (const plan::TermDifference& term : terms) {
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", words(term.term),
                        term.seconds < 0 ? "-" : "+", plan::time_text(std::abs(term.seconds)));
  }
  return text.empty() ? "the same to 0.1 %" : text;
}

std::string best_text(const SearchResult& result) {
  std::string text = "       step     MFU     memory  layout\n";
  for (size_t i = 0; i < result.best.size(); ++i) {
    const Found& found = result.best[i];
    text += fmt::format("{:>3}  {:>8}  {:>6}  {:>8}  {}\n", i + 1,
                        plan::time_text(found.estimate.time.step_s),
                        plan::percent_text(found.estimate.mfu), plan::bytes_text(bytes_of(found)),
                        plan::to_string(found.layout));
  }
  if (result.best.size() < 2) return text;
  text += "\nwhy: the first against the second, the others against the first\n";
  for (size_t i = 0; i < result.best.size(); ++i) {
    text += fmt::format("{:>3}  {}\n", i + 1, terms_text(result.best[i].against));
  }
  return text;
}

const char* heading(Rejection reason) {
  switch (reason) {
    case Rejection::illegal:
      return "illegal cut";
    case Rejection::memory:
      return "does not fit";
    case Rejection::bound:
      return "bound too slow";
    case Rejection::slower:
      return "slower";
    case Rejection::equal:
      return "equal";
  }
  return "";
}

std::string rejected_text(const SearchResult& result) {
  std::string text = "\nrejected, with the nearest of each\n";
  for (const Rejected& rejected : result.rejected) {
    const bool cut = rejected.reason == Rejection::illegal;
    text += fmt::format("  {:<15}{:>9}  {}{}\n", heading(rejected.reason), rejected.count,
                        cut ? "" : plan::to_string(rejected.example) + ' ', rejected.because);
  }
  return text;
}

std::string over(double seconds, double best) {
  const double more = seconds / best - 1;
  return std::abs(more) < 5e-4 ? "best" : fmt::format("{:+.{}f} %", more * 100, more < 0.1 ? 1 : 0);
}

std::string sensitivity_text(const SearchResult& result) {
  if (result.best.empty()) return {};
  const double best = result.best.front().estimate.time.step_s;
  std::string text =
      "\neach value of each knob: its best step, all else free (the first with only this "
      "changed)\n";
  for (const plan::Sensitivity& sensitivity : result.sensitivity) {
    text += fmt::format("  {:<12}", plan::name_of(sensitivity.knob));
    const char* separator = "";
    for (const plan::KnobValue& line : sensitivity.values) {
      text += fmt::format("{}{}: {}", separator, plan::value_text(sensitivity.knob, line.value),
                          line.best_s > 0 ? over(line.best_s, best) : "does not fit");
      if (line.held_s > 0 && line.held_s != line.best_s) {
        text += fmt::format(" ({})", over(line.held_s, best));
      }
      separator = ", ";
    }
    text += '\n';
  }
  return text;
}

Json terms_json(const std::vector<plan::TermDifference>& terms) {
  Json list = Json::array();
  for (const plan::TermDifference& term : terms) {
    list.push_back({{"term", term.term}, {"seconds", term.seconds}});
  }
  return list;
}

Json found_json(const SearchSpace& space, const Found& found) {
  const plan::StepTime& time = found.estimate.time;
  return {{"layout", plan::to_string(found.layout)},
          {"step_s", time.step_s},
          {"mfu", found.estimate.mfu},
          {"hfu", found.estimate.hfu},
          {"tokens_per_s", found.estimate.tokens_per_s},
          {"memory_bytes_per_gpu", bytes_of(found)},
          {"micro_batches", found.estimate.micro_batches},
          {"bubble_fraction", found.estimate.bubble_fraction},
          {"time", step_json(time)},
          {"against", terms_json(found.against)},
          {"not_run_yet", plan::not_run_yet(space.at(found.layout))}};
}

Json sensitivity_json(const plan::Sensitivity& sensitivity) {
  const auto or_null = [](double seconds) { return seconds > 0 ? Json(seconds) : Json(); };
  Json values = Json::array();
  for (const plan::KnobValue& line : sensitivity.values) {
    values.push_back({{"value", plan::value_text(sensitivity.knob, line.value)},
                      {"best_s", or_null(line.best_s)},
                      {"best_layout", line.best_s > 0 ? Json(plan::to_string(line.best)) : Json()},
                      {"held_s", or_null(line.held_s)},
                      {"reason", line.reason}});
  }
  return {{"knob", plan::name_of(sensitivity.knob)}, {"values", values}};
}

}  // namespace

std::string search_text(const SearchSpace& space, const SearchResult& result, double seconds) {
  std::string text =
      title(space) + fmt::format("{} layouts in {}, {} of them simulated\n\n", result.candidates,
                                 plan::time_text(seconds), result.timed);
  text += result.best.empty() ? "no layout fits in memory\n" : best_text(result);
  return text + rejected_text(result) + sensitivity_text(result);
}

Json search_json(const SearchSpace& space, const SearchResult& result, double seconds) {
  Json best = Json::array(), rejected = Json::array(), sensitivity = Json::array();
  for (const Found& found : result.best) best.push_back(found_json(space, found));
  for (const Rejected& one : result.rejected) {
    rejected.push_back({{"reason", plan::name_of(one.reason)},
                        {"what", one.what},
                        {"count", one.count},
                        {"example", plan::to_string(one.example)},
                        {"because", one.because}});
  }
  for (const plan::Sensitivity& one : result.sensitivity) {
    sensitivity.push_back(sensitivity_json(one));
  }
  return {{"model", space.model.name},
          {"cluster", space.cluster.name},
          {"gpus", space.devices},
          {"global_batch", space.recipe.global_batch},
          {"seq_len", space.recipe.seq_len},
          {"candidates", result.candidates},
          {"simulated", result.timed},
          {"search_s", seconds},
          {"fits", !result.best.empty()},
          {"best", best},
          {"rejected", rejected},
          {"sensitivity", sensitivity}};
}

std::string advice_text(const SearchSpace& space, const SearchResult& result,
                        const plan::Advice& advice) {
  std::string text = title(space) + '\n';
  int number = 0;
  for (const plan::AdviceStep& step : advice.steps) {
    text += fmt::format("{}. {} {}.\n   {}.\n   {}\n", ++number, step.question,
                        step.yes ? "Yes" : "No", step.numbers, step.consequence);
  }
  if (!advice.layout) return text + "\nNo layout that these questions lead to fits.\n";
  text += fmt::format("\nSo: {}\n    {} a step, MFU {}\n", plan::to_string(*advice.layout),
                      plan::time_text(advice.estimate.time.step_s),
                      plan::percent_text(advice.estimate.mfu));
  for (const std::string& warning : advice.warnings) text += "warning: " + warning + '\n';
  if (result.best.empty()) return text;
  const Found& best = result.best.front();
  if (advice.behind < 5e-3) return text + "A search of every layout finds none that is faster.\n";
  return text +
         fmt::format(
             "A search of every layout finds {}\n    {} a step: the one above takes {} longer "
             "({})\n",
             plan::to_string(best.layout), plan::time_text(best.estimate.time.step_s),
             plan::percent_text(advice.behind), terms_text(advice.against));
}

Json advice_json(const SearchSpace& space, const plan::Advice& advice) {
  Json steps = Json::array();
  for (const plan::AdviceStep& step : advice.steps) {
    steps.push_back({{"key", step.key},
                     {"question", step.question},
                     {"yes", step.yes},
                     {"numbers", step.numbers},
                     {"consequence", step.consequence},
                     {"layout", step.layout ? Json(plan::to_string(*step.layout)) : Json()},
                     {"memory_bytes_per_gpu", step.bytes > 0 ? Json(step.bytes) : Json()},
                     {"step_s", step.step_s > 0 ? Json(step.step_s) : Json()}});
  }
  Json report = {{"steps", steps}, {"layout", Json()}, {"step_s", Json()}, {"mfu", Json()}};
  if (advice.layout) {
    report["layout"] = plan::to_string(*advice.layout);
    report["step_s"] = advice.estimate.time.step_s;
    report["mfu"] = advice.estimate.mfu;
    report["not_run_yet"] = plan::not_run_yet(space.at(*advice.layout));
  }
  report["behind"] = advice.behind;
  report["against"] = terms_json(advice.against);
  report["warnings"] = advice.warnings;
  return report;
}

}  // namespace tessera::cli
