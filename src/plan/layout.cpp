#include "plan/layout.h"

#include <algorithm>
#include <numeric>

#include "spec/nearest.h"
#include "spec/options.h"

namespace tessera::plan {

std::string to_string(const Layout& layout) {
  std::string text;
  const auto add = [&](const char* key, const std::string& value) {
    text += (text.empty() ? "" : ",") + std::string(key) + '=' + value;
  };
  const auto degree = [&](const char* key, int64_t value) {
    if (value > 1) add(key, std::to_string(value));
  };
  degree("tp", layout.tp);
  if (layout.sequence_parallel) add("sp", "1");
  degree("cp", layout.cp);
  degree("pp", layout.pp);
  if (layout.pp > 1) add("schedule", std::string(spec::schedule_name(layout.schedule)));
  degree("v", layout.v);
  add("dp", std::to_string(layout.dp));
  degree("ep", layout.ep);
  if (layout.zero > 0) add("zero", std::to_string(layout.zero));
  if (layout.zero > 0 && layout.shard > 0) add("shard", std::to_string(layout.shard));
  add("micro_batch", std::to_string(layout.micro_batch));
  if (layout.recompute != spec::Recompute::none) {
    add("recompute", std::string(spec::name_of(layout.recompute)));
  }
  return text;
}

int64_t num_micro_batches(const Recipe& recipe, const Layout& layout) {
  const int64_t share = (recipe.global_batch + layout.dp - 1) / layout.dp;
  return (share + layout.micro_batch - 1) / layout.micro_batch;
}

namespace {

/// The divisors of `number` next to `value`, for a message.
std::string nearest_divisors(int64_t number, int64_t value) {
  std::vector<std::string> words;
  for (const int64_t divisor : spec::nearest_divisors(number, value)) {
    words.push_back(std::to_string(divisor));
  }
  return spec::join_or(words);
}

class Checker {
 public:
  Checker(const Model& model, const Recipe& recipe, const Layout& layout)
      : model_(model), recipe_(recipe), layout_(layout) {}
  void take_uneven_batches() { uneven_ = true; }

  std::vector<spec::Violation> run() {
    check_positive();
    if (!found_.empty()) return std::move(found_);
    check_tensor();
    check_pipeline();
    check_data();
    check_experts();
    return std::move(found_);
  }

 private:
  void add(const char* key, int64_t value, std::string why, std::string suggest = {}) {
    found_.push_back({key, std::to_string(value), std::move(why), std::move(suggest), {}});
  }

  void check_positive() {
    const auto positive = [&](const char* key, int64_t value) {
      if (value < 1) add(key, value, "must be at least 1", "1");
    };
    positive("tp", layout_.tp);
    positive("cp", layout_.cp);
    positive("pp", layout_.pp);
    positive("dp", layout_.dp);
    positive("ep", layout_.ep);
    positive("virtual-stages", layout_.v);
    positive("micro-batch", layout_.micro_batch);
    positive("global-batch", recipe_.global_batch);
    positive("seq-len", recipe_.seq_len);
    if (layout_.zero < 0 || layout_.zero > 3) {
      add("zero", layout_.zero, "is not a ZeRO stage", "0, 1, 2 or 3");
    }
  }

  void check_tensor() {
    const spec::ModelConfig& config = model_.dense;
    const auto divides = [&](int64_t number, const char* what) {
      if (number % layout_.tp == 0) return;
      add("tp", layout_.tp, "does not divide the " + std::to_string(number) + ' ' + what,
          nearest_divisors(number, layout_.tp));
    };
    divides(config.num_attention_heads, "attention heads");
    divides(config.intermediate_size, "columns of the MLP");
    const int64_t kv = config.num_key_value_heads;
    if (kv % layout_.tp != 0 && layout_.tp % kv != 0) {
      add("tp", layout_.tp,
          "neither divides the " + std::to_string(kv) +
              " key-value heads nor is a multiple of them",
          nearest_divisors(kv, layout_.tp));
    }
    if (layout_.sequence_parallel && recipe_.seq_len % (layout_.tp * layout_.cp) != 0) {
      add("tp", layout_.tp,
          "does not divide the sequence of " + std::to_string(recipe_.seq_len) +
              " tokens, which sequence parallelism cuts",
          nearest_divisors(recipe_.seq_len / layout_.cp, layout_.tp));
    }
    if (recipe_.seq_len % (2 * layout_.cp) != 0 && layout_.cp > 1) {
      add("cp", layout_.cp,
          "does not cut the sequence of " + std::to_string(recipe_.seq_len) +
              " tokens into 2 · cp equal pieces",
          nearest_divisors(recipe_.seq_len / 2, layout_.cp));
    }
  }

  void check_pipeline() {
    const int64_t layers = model_.dense.num_hidden_layers;
    // Embedding and head may each be a stage of their own.
    if (layout_.stages() > layers + 2) {
      add("pp", layout_.pp,
          "with " + std::to_string(layout_.v) + " stages a rank needs " +
              std::to_string(layout_.stages()) + " layers; there are " + std::to_string(layers),
          "at most " + std::to_string(std::max<int64_t>(layers / layout_.v, 1)));
    }
    if (layout_.pp == 1) {
      if (layout_.v > 1) add("virtual-stages", layout_.v, "needs a pipeline: pp of 2 or more", "1");
      return;
    }
    if (!spec::takes_chunks(layout_.schedule, layout_.v)) {
      add("virtual-stages", layout_.v,
          "is not what schedule " + std::string(spec::schedule_name(layout_.schedule)) + " takes",
          std::to_string(spec::usual_chunks(layout_.schedule)));
    }
    const auto sum = std::accumulate(layout_.layers_per_stage.begin(),
                                     layout_.layers_per_stage.end(), int64_t{0});
    if (!layout_.layers_per_stage.empty() &&
        (sum != layers ||
         static_cast<int64_t>(layout_.layers_per_stage.size()) != layout_.stages())) {
      add("layers-per-stage", sum,
          "must be one number for each of the " + std::to_string(layout_.stages()) + " stages, " +
              std::to_string(layers) + " in all");
    }
  }

  void check_data() {
    if (recipe_.global_batch < layout_.dp) {
      add("dp", layout_.dp,
          "is more replicas than the " + std::to_string(recipe_.global_batch) +
              " sequences of a global batch",
          "at most " + std::to_string(recipe_.global_batch));
    } else if (!uneven_ && recipe_.global_batch % (layout_.dp * layout_.micro_batch) != 0) {
      add("micro-batch", layout_.micro_batch,
          "times dp = " + std::to_string(layout_.dp) + " does not divide the global batch of " +
              std::to_string(recipe_.global_batch),
          recipe_.global_batch % layout_.dp == 0
              ? nearest_divisors(recipe_.global_batch / layout_.dp, layout_.micro_batch)
              : "a dp that divides it: " + nearest_divisors(recipe_.global_batch, layout_.dp));
    }
    const int64_t replicas = layout_.dp * layout_.cp;
    if (layout_.shard > 0 && replicas % layout_.shard != 0) {
      add("shard", layout_.shard,
          "does not divide the " + std::to_string(replicas) + " data-parallel ranks",
          nearest_divisors(replicas, layout_.shard));
    }
  }

  void check_experts() {
    if (layout_.ep == 1) return;
    if (!model_.experts) {
      add("ep", layout_.ep, "needs a model with experts", "1");
      return;
    }
    if (model_.experts->count % layout_.ep != 0) {
      add("ep", layout_.ep,
          "does not divide the " + std::to_string(model_.experts->count) + " experts",
          nearest_divisors(model_.experts->count, layout_.ep));
    }
    const int64_t ranks = layout_.dp * layout_.cp * layout_.tp;
    if (ranks % layout_.ep != 0) {
      add("ep", layout_.ep,
          "does not divide the " + std::to_string(ranks) + " ranks of a pipeline stage",
          nearest_divisors(ranks, layout_.ep));
    }
  }

  const Model& model_;
  const Recipe& recipe_;
  const Layout& layout_;
  bool uneven_ = false;
  std::vector<spec::Violation> found_;
};

}  // namespace

std::vector<spec::Violation> mistakes(const Model& model, const Recipe& recipe,
                                      const Layout& layout, UnevenBatches uneven) {
  Checker checker(model, recipe, layout);
  if (uneven == UnevenBatches::taken) checker.take_uneven_batches();
  return checker.run();
}

std::vector<int64_t> blocks_of_stages(const Model& model, const Layout& layout) {
  if (!layout.layers_per_stage.empty()) return layout.layers_per_stage;
  const int64_t stages = layout.stages(), layers = model.dense.num_hidden_layers;
  std::vector<int64_t> blocks(static_cast<size_t>(stages), layers / stages);
  // What is left over goes to the middle: the first stage embeds, the last one has the head.
  const int64_t left = layers % stages, first = (stages - left + 1) / 2;
  for (int64_t i = 0; i < left; ++i) ++blocks[static_cast<size_t>(first + i)];
  return blocks;
}

}  // namespace tessera::plan
