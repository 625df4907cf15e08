#include "plan/validate.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "plan/baseline.h"

namespace tessera::plan {

namespace {

/// FNV-1a (Fowler, Noll, Vo) and a final mix: the same everywhere.
uint64_t hash_of(const std::string& text) {
  uint64_t hash = 14695981039346656037ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  hash ^= hash >> 33;
  hash *= 0xff51afd7ed558ccdULL;
  return hash ^ (hash >> 33);
}
constexpr uint64_t kSeed = 2022;

bool wide_format(const PublishedRun& run) {
  return run.precision == "fp16" || run.precision.rfind("bf16", 0) == 0;
}

/// What has to be the same in a sweep of layouts.
std::string sweep_key(const PublishedRun& run) {
  const auto text = [](const std::optional<double>& number) {
    return std::to_string(number.value_or(0)) + ' ';
  };
  return run.group() + ' ' + run.stack + ' ' + run.gpu + ' ' + run.precision + ' ' +
         text(run.layers) + text(run.hidden) + text(run.heads) + text(run.seq_len) +
         text(run.num_gpus) + text(run.global_batch);
}

/// A layout of a sweep: measured once, or the mean of several times.
struct Entry {
  double predicted = 0, measured = 0;
};

std::vector<Entry> entries_of(const std::vector<const ValidatedRow*>& rows) {
  std::map<std::string, std::vector<const ValidatedRow*>> same;
  for (const ValidatedRow* row : rows) same[to_string(row->run->layout)].push_back(row);
  std::vector<Entry> entries;
  for (const auto& [layout, repeated] : same) {
    Entry entry;
    for (const ValidatedRow* row : repeated) {
      entry.predicted += row->step_s / static_cast<double>(repeated.size());
      entry.measured += *row->published->step_time_s / static_cast<double>(repeated.size());
    }
    entries.push_back(entry);
  }
  return entries;
}

Ranking ranking_of(const std::vector<Entry>& rows) {
  constexpr double kTie = 0.03;
  Ranking ranking;
  ranking.count = static_cast<int64_t>(rows.size());
  int64_t pairs = 0, agree = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    for (size_t j = i + 1; j < rows.size(); ++j) {
      const double one = rows[i].measured, other = rows[j].measured;
      if (std::abs(one - other) < kTie * std::min(one, other)) continue;
      ++pairs;
      agree += (one < other) == (rows[i].predicted < rows[j].predicted) ? 1 : 0;
    }
  }
  ranking.kendall_tau =
      pairs > 0 ? static_cast<double>(2 * agree - pairs) / static_cast<double>(pairs) : 1;
  const auto by = [&](double Entry::* field) {
    return *std::min_element(rows.begin(), rows.end(), [field](const Entry& a, const Entry& b) {
      return a.*field < b.*field;
    });
  };
  ranking.regret = by(&Entry::predicted).measured / by(&Entry::measured).measured - 1;
  return ranking;
}

class Grouping {
 public:
  explicit Grouping(const std::vector<ValidatedRow>& rows) : rows_(rows) {}

  std::vector<ValidationGroup> run() {
    const auto held_out = [](const ValidatedRow& row) { return !row.fitted; };
    const auto dense = [](const ValidatedRow& row) { return !row.published->has_experts(); };
    const auto wide = [](const ValidatedRow& row) { return wide_format(*row.published); };
    add("dense 16-bit, multi-node, held out", [&](const ValidatedRow& row) {
      return held_out(row) && dense(row) && wide(row) && row.published->multi_node();
    });
    add("dense 16-bit, multi-node, fitted", [&](const ValidatedRow& row) {
      return row.fitted && dense(row) && wide(row) && row.published->multi_node();
    });
    add("dense 16-bit, one node, held out", [&](const ValidatedRow& row) {
      return held_out(row) && dense(row) && wide(row) && !row.published->multi_node();
    });
    add("dense 8-bit and narrower, held out",
        [&](const ValidatedRow& row) { return held_out(row) && dense(row) && !wide(row); });
    add("experts, held out", [&](const ValidatedRow& row) { return held_out(row) && !dense(row); });
    add("experts, fitted", [&](const ValidatedRow& row) { return row.fitted && !dense(row); });
    add("all", [](const ValidatedRow&) { return true; });
    add_prefixes();
    add_sweeps();
    return std::move(groups_);
  }

 private:
  template <class Wanted>
  void add(std::string name, const Wanted& wanted) {
    std::vector<const ValidatedRow*> rows;
    for (const ValidatedRow& row : rows_) {
      if (row.run && wanted(row)) rows.push_back(&row);
    }
    if (rows.empty()) return;
    groups_.push_back({std::move(name),
                       summarise(rows, Judged::time),
                       summarise(rows, Judged::memory),
                       summarise(rows, Judged::baseline),
                       {},
                       {}});
  }

  void add_prefixes() {
    std::vector<std::string> names;
    for (const ValidatedRow& row : rows_) {
      const std::string group = row.published->group();
      if (std::find(names.begin(), names.end(), group) == names.end()) names.push_back(group);
    }
    for (const std::string& name : names) {
      add(name, [&](const ValidatedRow& row) { return row.published->group() == name; });
    }
  }

  /// Sweeps of layouts: five rows or more that differ in nothing else.
  void add_sweeps() {
    constexpr size_t kFewest = 5;
    std::map<std::string, std::vector<const ValidatedRow*>> sweeps;
    for (const ValidatedRow& row : rows_) {
      if (row.has_time()) sweeps[sweep_key(*row.published)].push_back(&row);
    }
    for (const auto& [key, rows] : sweeps) {
      const std::vector<Entry> entries = entries_of(rows);
      if (entries.size() < kFewest) continue;
      const PublishedRun& first = *rows[0]->published;
      ValidationGroup group;
      group.name = "sweep " + first.group() + ' ' + std::to_string(std::llround(*first.params_b)) +
                   "B " + std::to_string(std::llround(*first.layers)) + 'x' +
                   std::to_string(std::llround(*first.hidden)) + " on " +
                   std::to_string(std::llround(*first.num_gpus));
      group.time = summarise(rows, Judged::time);
      group.baseline = summarise(rows, Judged::baseline);
      group.ranking = ranking_of(entries);
      std::vector<const ValidatedRow*> unseen;
      std::copy_if(rows.begin(), rows.end(), std::back_inserter(unseen),
                   [](const ValidatedRow* row) { return !row->fitted; });
      if (unseen.size() > 1) group.held_out = ranking_of(entries_of(unseen));
      groups_.push_back(std::move(group));
    }
  }

  const std::vector<ValidatedRow>& rows_;
  std::vector<ValidationGroup> groups_;
};

}  // namespace

bool is_fitted(const std::string& id) {
  return hash_of(id + '#' + std::to_string(kSeed)) % 100 < 40;
}

ErrorSummary summarise(const std::vector<const ValidatedRow*>& rows, Judged what) {
  ErrorSummary summary;
  for (const ValidatedRow* row : rows) {
    if (what == Judged::memory ? !row->has_memory() : !row->has_time()) continue;
    if (what == Judged::baseline && row->baseline_s == 0) continue;
    // Of a case without a pass to compute, a share of the peak is no number.
    if (what == Judged::baseline && !std::isfinite(row->baseline_s)) continue;
    const double error = std::abs(what == Judged::memory     ? row->memory_error()
                                  : what == Judged::baseline ? row->baseline_error()
                                                             : row->time_error());
    ++summary.count;
    summary.mean_abs_error += error;
    if (error > summary.worst_abs_error) {
      summary.worst_abs_error = error;
      summary.worst_id = row->published->id;
    }
  }
  if (summary.count > 0) summary.mean_abs_error /= static_cast<double>(summary.count);
  return summary;
}

Validation validate(const std::vector<PublishedRun>& runs, const Constants& constants) {
  Validation validation;
  for (const PublishedRun& published : runs) {
    ValidatedRow row;
    row.published = &published;
    row.fitted = is_fitted(published.id);
    ModelledRun model = modelled(published);
    row.skipped = std::move(model.skipped);
    row.assumed = std::move(model.assumed);
    if (model.run) {
      const Estimate result = estimate(*model.run, constants);
      row.step_s = result.time.step_s;
      row.memory_gib = result.memory[result.worst_rank].total() / (1 << 30);
      row.fits = result.fits;
      row.run = std::move(model.run);
      if (published.out_of_memory()) {
        ++validation.out_of_memory_rows;
        validation.wrongly_fitting += result.fits ? 1 : 0;
      } else if (published.step_time_s && !published.recompute.empty()) {
        ++validation.ran_rows;
        validation.wrongly_too_large += result.fits ? 0 : 1;
      }
    }
    validation.rows.push_back(std::move(row));
  }
  const Baseline baseline(validation.rows);
  for (ValidatedRow& row : validation.rows) {
    if (row.run) row.baseline_s = baseline.step_s(*row.run);
  }
  validation.groups = Grouping(validation.rows).run();
  return validation;
}

}  // namespace tessera::plan
