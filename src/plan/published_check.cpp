#include "plan/published_check.h"

#include <algorithm>
#include <array>
#include <span>

#include "plan/text.h"
#include "spec/nearest.h"

namespace tessera::plan {

namespace {

constexpr std::array<std::string_view, 6> kSchedules = {"1f1b",  "interleaved", "gpipe",
                                                        "zb-h1", "zb-v",        "dualpipe"};
constexpr std::array<std::string_view, 3> kRecomputations = {"none", "full", "selective"};

/// What a count of a row may be.
struct Count {
  const char* column;
  std::optional<double> PublishedRun::* field;
  double least, most;
};
constexpr double kMany = 1 << 30;
constexpr std::array<Count, 22> kCounts = {{
    {"layers", &PublishedRun::layers, 1, 1 << 20},
    {"hidden", &PublishedRun::hidden, 1, kMany},
    {"heads", &PublishedRun::heads, 1, kMany},
    {"kv_heads", &PublishedRun::kv_heads, 1, kMany},
    {"ffn", &PublishedRun::ffn, 1, kMany},
    {"vocab", &PublishedRun::vocab, 1, kMany},
    {"seq_len", &PublishedRun::seq_len, 1, kMany},
    {"num_experts", &PublishedRun::num_experts, 0, 1 << 20},
    {"top_k", &PublishedRun::top_k, 0, 1 << 20},
    {"shared_experts", &PublishedRun::shared_experts, 0, 1 << 20},
    {"dense_layers", &PublishedRun::dense_layers, 0, 1 << 20},
    {"dense_ffn", &PublishedRun::dense_ffn, 1, kMany},
    {"num_gpus", &PublishedRun::num_gpus, 1, kMany},
    {"nodes", &PublishedRun::nodes, 1, kMany},
    {"tp", &PublishedRun::tp, 1, 1 << 20},
    {"cp", &PublishedRun::cp, 1, 1 << 20},
    {"pp", &PublishedRun::pp, 1, 1 << 20},
    {"vpp", &PublishedRun::vpp, 0, 1024},
    {"dp", &PublishedRun::dp, 1, 1 << 20},
    {"ep", &PublishedRun::ep, 1, 1 << 20},
    {"micro_batch", &PublishedRun::micro_batch, 0, 1 << 24},
    {"global_batch", &PublishedRun::global_batch, 1, 1 << 24},
}};

/// A word that is not known may mean anything: a guess would be judged as a prediction.
std::string unknown_word(const char* column, const std::string& word,
                         std::span<const std::string_view> known) {
  if (word.empty() || std::find(known.begin(), known.end(), word) != known.end()) return {};
  return std::string(column) + " '" + word + "' is none of " +
         spec::join_or({known.begin(), known.end()});
}

std::string count_out_of_range(const PublishedRun& row) {
  for (const Count& count : kCounts) {
    const std::optional<double>& number = row.*count.field;
    if (!number || (*number >= count.least && *number <= count.most)) continue;
    return std::string(count.column) + " is " + number_text(*number, 10) + ", not from " +
           number_text(count.least, 10) + " to " + number_text(count.most, 10);
  }
  return {};
}

std::string experts_out_of_range(const PublishedRun& row) {
  if (!row.has_experts()) return {};
  const double top_k = row.top_k.value_or(1);
  if (top_k > *row.num_experts) {
    return "top_k is " + number_text(top_k, 9) + ", of " + number_text(*row.num_experts, 9) +
           " experts";
  }
  if (row.layers && row.dense_layers.value_or(0) > *row.layers) {
    return "dense_layers is " + number_text(*row.dense_layers, 9) + ", of " +
           number_text(*row.layers, 9) + " layers";
  }
  return {};
}

/// Parameters are counted in 64 bits, with room for what is summed of them.
std::string model_out_of_range(const PublishedRun& row) {
  constexpr double kMost = 1e16;
  const double hidden = row.hidden.value_or(0);
  const double experts =
      std::max(row.num_experts.value_or(0), 1.0) + row.shared_experts.value_or(0);
  const double widest = std::max(row.ffn.value_or(0), row.dense_ffn.value_or(0));
  const double layer = hidden * (4 * hidden + 3 * widest * experts);
  const double total = row.layers.value_or(0) * layer + 2 * hidden * row.vocab.value_or(0);
  if (total <= kMost) return {};
  return "the model's shape makes " + number_text(total, 3) + " parameters, more than " +
         number_text(kMost);
}

}  // namespace

std::string impossible_in(const PublishedRun& row) {
  for (std::string wrong :
       {unknown_word("schedule", row.schedule, kSchedules),
        unknown_word("recompute", row.recompute, kRecomputations), count_out_of_range(row),
        experts_out_of_range(row), model_out_of_range(row)}) {
    if (!wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace tessera::plan
