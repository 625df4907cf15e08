#include "train/copy_hashes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "account/model_part.h"
#include "parallel/mesh_groups.h"
#include "train/thread_ranks.h"

namespace tessera::train {
namespace {

using testing::HasSubstr;

/// A tied model of two key-value heads over four ranks of tensor parallelism, two stages and two
/// data-parallel ranks: rank ((pp · 2 + dp) · 4 + tp).
spec::RunConfig config_of_all_copies() {
  spec::RunConfig config;
  config.model = spec::family_defaults(spec::Architecture::llama);
  config.model.hidden_size = 16;
  config.model.num_hidden_layers = 2;
  config.model.num_attention_heads = 4;
  config.model.num_key_value_heads = 2;
  config.model.intermediate_size = 20;
  config.model.vocab_size = 19;
  config.model.tie_word_embeddings = true;
  config.training.precision = spec::Precision::fp32;
  config.training.global_batch_size = 8;
  config.training.micro_batch_size = 1;
  config.parallelism.pipeline_parallel_degree = 2;
  config.parallelism.data_parallel_degree = 2;
  config.parallelism.tensor_parallel_degree = 4;
  return config;
}

/// What is found when `torn` has changed one of its parameters, "" for none: of every rank.
std::string find_after(const std::string& parameter, int torn, int64_t zero = 0) {
  spec::RunConfig config = config_of_all_copies();
  config.parallelism.zero_stage = zero;
  std::string found;
  run_thread_ranks({16, 16}, {}, [&](comm::Communicator& comm) {
    parallel::MeshGroups groups(comm, config);
    parallel::DataParallel& dp = groups.data_parallel();
    const account::ParameterTable table =
        account::parameter_table(config.model, config.lora, account::part_of(config, comm.rank()));
    core::MemoryLedger ledger;
    parallel::ModelState state(table, config.training, /*for_training=*/true, ledger,
                               {dp.sharding(), dp.shard_rank()});
    state.initialise(3);
    for (int u = 0; u < state.num_units() && zero > 0; ++u) {  // as Replica does
      if (zero < 3) {
        dp.shard().all_gather(state.held_weights(u),
                              state.owned_trained(parallel::StateKind::weights, u));
      }
    }
    if (comm.rank() == torn) {
      const account::Parameter* changed = table.find(parameter);
      ASSERT_NE(changed, nullptr) << parameter;
      state.parameters().get(*changed).value.as<float>()[0] += 1.0F;
    }
    const auto hashes = gather_copy_hashes(hash_copies(state, groups), groups);
    if (comm.rank() == 0) found = find_differing_copy(hashes, groups.mesh(), 2);
  });
  return found;
}

TEST(CopyHashes, AgreeWhereNothingWentWrong) {
  for (const int64_t zero : {0, 1, 3}) EXPECT_EQ(find_after("", -1, zero), "");
}

TEST(CopyHashes, TellWhichDataParallelRankDiffers) {
  EXPECT_THAT(find_after("model.layers.0.self_attn.q_proj.weight", 6),
              HasSubstr("rank 6 ends with other weights than rank 2: data-parallel"));
}

/// The same change on all data-parallel ranks of a place.
std::string find_in(const std::function<void(CopyHashes&)>& tear, const std::vector<size_t>& torn) {
  std::vector<CopyHashes> ranks(16, CopyHashes{1, 2, 3, 0});
  for (const size_t rank : {0, 1, 2, 3, 4, 5, 6, 7}) ranks[rank].tied = 4;
  for (const size_t rank : {8, 9, 10, 11, 12, 13, 14, 15}) ranks[rank].tied = 4;
  for (const size_t rank : torn) tear(ranks[rank]);
  return find_differing_copy(ranks, {2, 2, 1, 4}, 2);
}

TEST(CopyHashes, TellWhichTensorParallelRankDiffers) {
  EXPECT_EQ(find_in([](CopyHashes&) {}, {}), "");
  const auto replicated = [](CopyHashes& hashes) { ++hashes.part, ++hashes.replicated; };
  EXPECT_THAT(find_in(replicated, {3, 7}),
              HasSubstr("rank 3 ends with other weights than rank 0: what tensor parallelism"));
  const auto heads = [](CopyHashes& hashes) { ++hashes.part, ++hashes.key_values; };
  EXPECT_THAT(find_in(heads, {11, 15}),
              HasSubstr("rank 11 ends with other weights than rank 10: copies of the same"));
  // Both copies of the last two ranks' heads: other heads than those of the first two.
  EXPECT_EQ(find_in(heads, {2, 3, 6, 7}), "");
}

TEST(CopyHashes, TellWhichCopyOfATiedEmbeddingDiffers) {
  const auto tied = [](CopyHashes& hashes) { ++hashes.part, ++hashes.tied; };
  EXPECT_THAT(find_in(tied, {9, 13}),
              HasSubstr("rank 9 ends with other weights than rank 1: the two copies"));
}

TEST(CopyHashes, ReadWhatTheyAreAbout) {
  const spec::RunConfig config = config_of_all_copies();
  run_thread_ranks({16, 16}, {}, [&](comm::Communicator& comm) {
    parallel::MeshGroups groups(comm, config);
    const account::ParameterTable table =
        account::parameter_table(config.model, config.lora, account::part_of(config, comm.rank()));
    core::MemoryLedger ledger;
    parallel::ModelState state(table, config.training, /*for_training=*/false, ledger,
                               {groups.data_parallel().sharding(), 0});
    state.initialise(3);
    const CopyHashes before = hash_copies(state, groups);
    const auto change = [&](account::Role role, account::UnitKind kind) {
      for (size_t u = 0; u < table.units.size(); ++u) {
        const account::Parameter* found = table.find(static_cast<int>(u), role);
        if (found == nullptr || table.units[u].kind != kind) continue;
        state.parameters().get(*found).value.as<float>()[0] += 1.0F;
        return;
      }
      FAIL() << "no such parameter on rank " << comm.rank();
    };
    change(account::Role::input_norm_weight, account::UnitKind::block);
    const CopyHashes norm = hash_copies(state, groups);
    EXPECT_NE(norm.replicated, before.replicated);
    EXPECT_EQ(norm.key_values, before.key_values);
    change(account::Role::v_weight, account::UnitKind::block);
    const CopyHashes value = hash_copies(state, groups);
    EXPECT_NE(value.key_values, before.key_values);
    EXPECT_EQ(value.tied, before.tied);
    change(account::Role::token_embedding, account::UnitKind::embedding);
    const CopyHashes embedding = hash_copies(state, groups);
    EXPECT_NE(embedding.tied, value.tied);
    EXPECT_EQ(embedding.replicated, value.replicated);
  });
}

}  // namespace
}  // namespace tessera::train
