#include "plan/conventions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <sstream>

#include "plan/published_run.h"

namespace tessera::plan {
namespace {

Case llama_3_70b() {
  Case run;
  run.model = *find_model("llama-3-70b");
  run.cluster = *find_cluster("h100-80g");
  run.recipe.seq_len = 8192;
  run.recipe.global_batch = 1;
  return run;
}

double giga_per_token(Convention convention, const Case& run) {
  return flops_by(convention, run) / static_cast<double>(run.recipe.seq_len) / 1e9;
}

// NeMo 24.x publishes the first figure for this model, Megatron-Bridge the second.
TEST(Conventions, TellFullAttentionFromCausal) {
  EXPECT_NEAR(giga_per_token(Convention::palm, llama_3_70b()), 481.4, 0.05);
  EXPECT_NEAR(giga_per_token(Convention::causal, llama_3_70b()), 449.2, 0.05);
}

// DGX Cloud's figure for Nemotron-340B: 1.01e16 FLOPs a sequence, without its query groups.
TEST(Conventions, CountKeysOfEveryHeadWhereASourceDid) {
  Case run;
  run.model.dense = spec::family_defaults(spec::Architecture::gpt2);
  run.model.dense.num_hidden_layers = 96;
  run.model.dense.hidden_size = 18432;
  run.model.dense.num_attention_heads = 96;
  run.model.dense.num_key_value_heads = 8;
  run.model.dense.head_dim = 192;
  run.model.dense.intermediate_size = 73728;
  run.model.dense.vocab_size = 256000;
  run.recipe.seq_len = 4096;
  run.recipe.global_batch = 1;
  EXPECT_NEAR(flops_by(Convention::palm, run) / 1e16, 0.862, 0.005);
  EXPECT_NEAR(flops_by(Convention::no_query_groups, run) / 1e16, 1.01, 0.005);
}

/// Rows of the published runs whose step time was worked out from FLOP/s of a device (SC'21), and
/// the published rate of the first and last.
TEST(Conventions, GiveStepTimesForPublishedRates) {
  std::ifstream file(std::string(TESSERA_TESTS_DIR) + "/../data/published_runs.csv");
  std::stringstream text;
  text << file.rdbuf();
  int checked = 0;
  for (const PublishedRun& run : parse_published_runs(text.str()).runs) {
    const ModelledRun model = modelled(run);
    if (!model.run || !run.step_time_s) continue;
    if (run.id == "sc21t1-001" || run.id == "sc21t1-010") {
      const double rate = run.id == "sc21t1-001" ? 137e12 : 163e12;
      EXPECT_NEAR(step_seconds(Convention::megatron_2021, *model.run, rate), *run.step_time_s,
                  0.002 * *run.step_time_s);
      ++checked;
    }
    // The column that others worked out by the same convention.
    if (run.mfu_pct_normalised && !run.has_experts()) {
      const double mfu = utilisation(Convention::palm, *model.run, *run.step_time_s, Format::bf16);
      EXPECT_NEAR(100 * mfu, *run.mfu_pct_normalised, 0.012 * *run.mfu_pct_normalised) << run.id;
      ++checked;
    }
  }
  EXPECT_GT(checked, 300);
}

// Korthikanti et al. 2022, table 5: hardware over model FLOPs with selective recomputation.
TEST(Conventions, GiveTheHardwareFactorsOfSelectiveRecomputation) {
  struct Published {
    int64_t layers, hidden;
    double factor;
  };
  for (const Published& row : {Published{48, 6144, 1.053}, Published{96, 12288, 1.027},
                               Published{105, 20480, 1.018}, Published{128, 25600, 1.012}}) {
    Case run;
    run.model.dense = spec::family_defaults(spec::Architecture::gpt2);
    run.model.dense.num_hidden_layers = row.layers;
    run.model.dense.hidden_size = row.hidden;
    run.model.dense.num_attention_heads = row.hidden / 128;
    run.model.dense.vocab_size = 51200;
    run.model.dense = spec::resolved(run.model.dense);
    run.recipe.seq_len = 2048;
    EXPECT_NEAR(flops_by(Convention::korthikanti, run) / flops_by(Convention::palm, run),
                row.factor, 0.0025);
  }
}

}  // namespace
}  // namespace tessera::plan
