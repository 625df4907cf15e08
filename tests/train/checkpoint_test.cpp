// A checkpoint of any layout is read by any other: every state of every element, to the bit.

#include "train/checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <mutex>

#include "account/model_part.h"
#include "core/error.h"
#include "formats/config_io.h"
#include "formats/manifest.h"
#include "formats/safetensors.h"
#include "kernels/elementwise.h"
#include "parallel/whole_state.h"
#include "toy_run.h"
#include "train/run_folder.h"
#include "train/start_weights.h"
#include "train/thread_ranks.h"

namespace tessera::train {
namespace {

namespace fs = std::filesystem;
using core::ConstView;
using core::DType;
using core::View;
using parallel::StateKind;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Sizes that divide by little.
spec::RunConfig odd_config(spec::Precision precision, int64_t lora_rank = 0) {
  spec::RunConfig config;
  config.model = lora_rank > 0 ? toy_llama() : spec::family_defaults(spec::Architecture::gpt2);
  config.model.hidden_size = 20;
  config.model.intermediate_size = 36;
  config.model.num_hidden_layers = 2;
  config.model.num_attention_heads = 4;
  config.model.vocab_size = 67;
  config.model.max_position_embeddings = 9;
  config.data.seq_len = 9;
  config.lora.rank = lora_rank;
  config.training.precision = precision;
  return spec::resolved(config, 1);
}

/// What element `i` of a state is: some number that no other element has nearby; the same with
/// adapters beside the parameter or without.
float telltale(const account::Parameter& parameter, StateKind kind, int64_t i) {
  const auto bits =
      core::philox(static_cast<uint64_t>(kind), parameter.init_key, static_cast<uint64_t>(i));
  return static_cast<float>(bits[0] % 1'000'003) * 1e-6F - 0.5F;
}

/// Those of a run of the part that is held of a parameter; padding is 0.
std::vector<float> telltales(const account::Parameter& parameter, StateKind kind,
                             const parallel::ElementRange& range) {
  std::vector<float> values(static_cast<size_t>(range.count), 0.0F);
  account::for_each_run(parameter, range.first, range.count,
                        [&](int64_t in_whole, int64_t in_part, int64_t count) {
                          for (int64_t i = 0; i < count; ++i) {
                            values[static_cast<size_t>(in_part - range.first + i)] =
                                telltale(parameter, kind, in_whole + i);
                          }
                        });
  return values;
}

/// shards · replicas data-parallel ranks in a stage of ZeRO, each of tp · pp.
struct Layout {
  int64_t stage = 0, shards = 1, replicas = 1, tp = 1, pp = 1;
};

spec::RunConfig in_layout(spec::RunConfig config, const Layout& layout) {
  config.training.global_batch_size = 8 * layout.shards * layout.replicas;
  config.training.micro_batch_size = 1;
  config.parallelism.zero_stage = layout.stage;
  config.parallelism.shard_degree = layout.shards;
  config.parallelism.data_parallel_degree = layout.shards * layout.replicas;
  config.parallelism.tensor_parallel_degree = layout.tp;
  config.parallelism.pipeline_parallel_degree = layout.pp;
  return config;
}

/// A rank of a layout with its state.
struct Rank {
  Rank(const spec::RunConfig& run, comm::Communicator& comm)
      : config(run),
        groups(comm, run),
        table(account::parameter_table(run.model, run.lora, account::part_of(run, comm.rank()))),
        state(table, run.training, /*for_training=*/true, ledger,
              {groups.data_parallel().sharding(), groups.data_parallel().shard_rank()}) {}

  void fill() {
    for (const account::Parameter& parameter : table.parameters) {
      for (const StateKind kind : {StateKind::master, StateKind::m, StateKind::v}) {
        if (kind != StateKind::master && !parameter.trainable) continue;
        const parallel::ElementRange range = state.owned_range(parameter);
        if (range.count == 0) continue;
        const std::vector<float> values = telltales(parameter, kind, range);
        kernels::cast(state.owned(kind, parameter),
                      ConstView{values.data(), DType::f32, {range.count}});
      }
    }
    state.refresh_weights_from_master();
  }
  void save(const fs::path& folder) {
    save_checkpoint(folder, state, groups, {7, 5, 84, formats::to_toml(config), "as told"});
  }
  void load(const fs::path& folder, LoadWhat what = LoadWhat::everything) {
    for (const account::Parameter& parameter : table.parameters) {  // what loading must replace
      if (state.owned_range(parameter).count == 0) continue;
      const View master = state.owned(StateKind::master, parameter);
      const std::vector<float> stale(static_cast<size_t>(master.elements()), 9.0F);
      kernels::cast(master, ConstView{stale.data(), DType::f32, {master.elements()}});
    }
    const CheckpointHeader header = load_checkpoint(folder, config, state, what);
    EXPECT_EQ(header.samples, 84);
  }
  /// All is as fill() leaves it, rounded where it is held in bf16: on this rank, and what rank 0
  /// makes of all ranks'.
  void expect_filled(const std::string& what) {
    for (const StateKind kind :
         {StateKind::weights, StateKind::master, StateKind::m, StateKind::v}) {
      const auto expect = [&](const account::Parameter& parameter, ConstView values) {
        const bool moment = kind == StateKind::m || kind == StateKind::v;
        std::vector<float> expected =
            telltales(parameter, moment ? kind : StateKind::master, {0, parameter.elements()});
        if (values.dtype == DType::bf16) {
          for (float& value : expected) value = static_cast<float>(core::bf16(value));
        }
        std::vector<float> actual(expected.size());
        kernels::cast(View{actual.data(), DType::f32, {values.elements()}}, values);
        EXPECT_EQ(actual, expected) << what << ": " << name_of(kind) << " of " << parameter.name;
      };
      parallel::visit_part(state, groups.data_parallel(), kind, expect);
      if (groups.mesh().tp * groups.mesh().pp == 1) continue;  // that was all
      std::vector<std::string> visited;
      parallel::visit_whole(state, groups, kind, [&](const auto& parameter, ConstView values) {
        expect(parameter, values);
        visited.push_back(parameter.name);
      });
      if (groups.world().rank() == 0) {
        EXPECT_EQ(visited, names_with(kind)) << what;
      }
    }
  }
  /// Of the whole model, in order, those that have such a state.
  std::vector<std::string> names_with(StateKind kind) const {
    const bool base = kind == StateKind::weights || kind == StateKind::master;
    std::vector<std::string> names;
    for (const auto& parameter : account::parameter_table(config.model, config.lora).parameters) {
      if (base || parameter.trainable) names.push_back(parameter.name);
    }
    return names;
  }

  spec::RunConfig config;
  parallel::MeshGroups groups;
  account::ParameterTable table;
  core::MemoryLedger ledger;
  parallel::ModelState state;
};

const std::vector<Layout> kLayouts = {{0, 1, 1}, {0, 1, 3}, {1, 2, 1}, {1, 3, 1},
                                      {2, 2, 1}, {2, 5, 1}, {3, 2, 1}, {3, 3, 1},
                                      {3, 7, 1}, {3, 2, 2}, {1, 2, 3}};
/// With other axes than data parallelism. Two key-value heads over four ranks are copied.
const std::vector<Layout> kMeshes = {{0, 1, 1, 2}, {0, 1, 1, 4},    {0, 1, 1, 1, 2},
                                     {3, 3, 1, 2}, {1, 2, 1, 1, 2}, {2, 2, 1, 2, 2},
                                     {3, 2, 2, 2}, {0, 1, 2, 2, 2}};

std::string text_of(const Layout& layout) {
  return "stage " + std::to_string(layout.stage) + " on " + std::to_string(layout.shards) + " x " +
         std::to_string(layout.replicas) + " of tp " + std::to_string(layout.tp) + " pp " +
         std::to_string(layout.pp);
}

std::vector<Layout> all_layouts() {
  std::vector<Layout> layouts = kLayouts;
  layouts.insert(layouts.end(), kMeshes.begin(), kMeshes.end());
  return layouts;
}

class CheckpointTest : public testing::Test {
 protected:
  void on_ranks(const spec::RunConfig& model, const Layout& layout,
                const std::function<void(Rank&)>& work) const {
    const spec::RunConfig config = in_layout(model, layout);
    const auto ranks = static_cast<int>(spec::mesh_of(config.parallelism).size());
    run_thread_ranks({ranks, ranks}, {}, [&](comm::Communicator& comm) {
      Rank rank(config, comm);
      work(rank);
    });
  }
  void save(const spec::RunConfig& config, const Layout& layout) const {
    fs::remove_all(checkpoint_);
    on_ranks(config, layout, [&](Rank& rank) {
      rank.fill();
      rank.save(checkpoint_);
    });
  }
  std::string refusal() const {
    try {
      on_ranks(odd_config(spec::Precision::fp32), {0, 1, 1},
               [&](Rank& rank) { rank.load(checkpoint_); });
    } catch (const core::RunError& error) {
      return error.what();
    }
    return "loaded";
  }
  formats::Manifest manifest() const {
    return formats::manifest_from_json(read_file(checkpoint_ / "manifest.json"), "manifest.json");
  }

  TestFolder folder_;
  fs::path checkpoint_ = folder_.path() / "step-00000007";
};

TEST_F(CheckpointTest, OfAnyLayoutIsReadByAnyOther) {
  for (const auto precision : {spec::Precision::fp32, spec::Precision::bf16}) {
    for (const int64_t lora_rank : {0, 3}) {
      const spec::RunConfig config = odd_config(precision, lora_rank);
      for (const Layout& saved : kLayouts) {
        save(config, saved);
        for (const Layout& loaded : kLayouts) {
          on_ranks(config, loaded, [&](Rank& rank) {
            rank.load(checkpoint_);
            rank.expect_filled(text_of(saved) + " to " + text_of(loaded));
          });
        }
      }
    }
  }
}

TEST_F(CheckpointTest, OfAnyMeshIsReadByAnyOther) {
  std::vector<Layout> layouts = kMeshes;
  layouts.push_back({0, 1, 1});
  layouts.push_back({3, 3, 2});
  for (const int64_t lora_rank : {0, 3}) {
    const spec::RunConfig config = odd_config(spec::Precision::bf16, lora_rank);
    for (size_t i = 0; i < layouts.size(); ++i) {
      save(config, layouts[i]);
      // Half of the pairs with adapters, half without.
      for (size_t j = lora_rank > 0 ? i % 2 : 1 - i % 2; j < layouts.size(); j += 2) {
        on_ranks(config, layouts[j], [&](Rank& rank) {
          rank.load(checkpoint_);
          rank.expect_filled(text_of(layouts[i]) + " to " + text_of(layouts[j]));
        });
      }
    }
  }
}

TEST_F(CheckpointTest, OfAPartIsRefusedForWhatIsWrongWithTheWhole) {
  spec::RunConfig config = odd_config(spec::Precision::fp32);
  save(config, {0, 1, 1, 2, 2});
  config.model.vocab_size = 68;
  std::mutex mutex;
  on_ranks(config, {0, 1, 1, 2, 2}, [&](Rank& rank) {
    std::string refusal;
    try {
      rank.load(checkpoint_);
    } catch (const core::ConfigError& error) {
      refusal = error.what();
    }
    const std::lock_guard lock(mutex);
    EXPECT_THAT(refusal, HasSubstr("model.embed_tokens.weight is [67, 20] in the checkpoint and "
                                   "[68, 20] in the model"));
    EXPECT_THAT(refusal, Not(HasSubstr("but not in the model")));
  });
}

TEST_F(CheckpointTest, IsReadInAnotherPrecision) {
  const spec::RunConfig wide = odd_config(spec::Precision::fp32);
  const spec::RunConfig narrow = odd_config(spec::Precision::bf16);
  save(wide, {3, 3, 1});
  on_ranks(narrow, {2, 2, 1}, [&](Rank& rank) {
    rank.load(checkpoint_);
    rank.expect_filled("fp32 to bf16");
  });
  save(narrow, {1, 5, 1});
  on_ranks(wide, {3, 2, 2}, [&](Rank& rank) {
    rank.load(checkpoint_);
    rank.expect_filled("bf16 to fp32");
  });
}

TEST_F(CheckpointTest, IsTheFrozenBaseOfAdaptersInBf16) {
  spec::RunConfig plain = odd_config(spec::Precision::fp32, 3);
  plain.model.vocab_size = 4001;  // more elements than are converted at once
  spec::RunConfig adapted = plain;
  plain.lora = {};
  adapted.training.precision = spec::Precision::bf16;
  save(plain, {3, 3, 1});
  on_ranks(adapted, {3, 2, 1}, [&](Rank& rank) {
    rank.load(checkpoint_, LoadWhat::base);
    parallel::visit_part(rank.state, rank.groups.data_parallel(), StateKind::weights,
                         [&](const auto& parameter, ConstView values) {
                           if (parameter.is_adapter()) return;
                           ASSERT_EQ(values.dtype, DType::bf16);
                           for (int64_t i = 0; i < values.elements(); ++i) {
                             const core::bf16 expected(telltale(parameter, StateKind::master, i));
                             ASSERT_EQ(values.template as<core::bf16>()[i].bits, expected.bits)
                                 << parameter.name;
                           }
                         });
  });
}

TEST_F(CheckpointTest, HasTheHashOfItsWeightsInEveryLayout) {
  for (const int64_t lora_rank : {0, 3}) {
    const spec::RunConfig config = odd_config(spec::Precision::bf16, lora_rank);
    save(config, {3, 3, 1});
    std::string first;
    for (const Layout& layout : all_layouts()) {
      on_ranks(config, layout, [&](Rank& rank) {
        rank.load(checkpoint_);
        const std::string hash = weights_hash(rank.state, rank.groups);
        if (rank.groups.world().rank() != 0) return;
        if (first.empty()) first = hash;
        EXPECT_EQ(hash, first) << text_of(layout);
      });
    }
  }
}

TEST_F(CheckpointTest, HoldsEveryElementOnceWithoutPaddingSpreadOverTheRanks) {
  const spec::RunConfig config = odd_config(spec::Precision::bf16);
  const int64_t elements = account::parameter_table(config.model).num_elements();
  for (const Layout& layout : all_layouts()) {
    save(config, layout);
    int64_t total = 0;
    int64_t largest = 0;
    for (const auto& file : manifest().files) {
      int64_t bytes = 0;
      const formats::SafetensorsFile opened((checkpoint_ / file.first).string());
      for (const auto& entry : opened.entries()) bytes += entry.bytes;
      total += bytes;
      largest = std::max(largest, bytes);
    }
    EXPECT_EQ(total, 14 * elements) << text_of(layout);
    const int64_t shards = layout.shards;
    if (layout.replicas > 1 || layout.tp > 1 || layout.pp > 1) continue;
    EXPECT_LT(largest, 14 * (elements / shards + 4 * shards)) << text_of(layout);
  }
}

TEST_F(CheckpointTest, IsVerifiedByAllRanksTogether) {
  save(odd_config(spec::Precision::fp32), {3, 3, 1});
  const std::string file = (checkpoint_ / "rank-00001.safetensors").string();
  std::fstream damaged(file, std::ios::in | std::ios::out | std::ios::binary);
  damaged.seekp(-1, std::ios::end);
  damaged.put('\x55');
  damaged.close();
  core::MemoryLedger ledger;
  const spec::RunConfig config = odd_config(spec::Precision::fp32);
  const account::ParameterTable table = account::parameter_table(config.model);
  parallel::ModelState state(table, config.training, true, ledger);
  int found = 0;
  for (int64_t rank = 0; rank < 2; ++rank) {
    try {
      load_checkpoint(checkpoint_, config, state, LoadWhat::everything, {rank, 2});
    } catch (const core::RunError& error) {
      EXPECT_THAT(error.what(), HasSubstr("rank-00001.safetensors"));
      ++found;
    }
  }
  EXPECT_EQ(found, 1);
}

TEST_F(CheckpointTest, ThatIsDamagedSaysWhichFileAndWhatLiesInIt) {
  save(odd_config(spec::Precision::fp32), {3, 2, 1});
  const fs::path file = checkpoint_ / "rank-00001.safetensors";
  const auto names_the_contents =
      AllOf(HasSubstr(file.string()), HasSubstr("model.embed_"), HasSubstr("other parameters"));
  {
    std::fstream damaged(file, std::ios::in | std::ios::out | std::ios::binary);
    damaged.seekp(-1, std::ios::end);
    damaged.put('\x55');
  }
  EXPECT_THAT(refusal(), AllOf(names_the_contents, HasSubstr("checksum")));
  fs::resize_file(file, fs::file_size(file) - 4);
  EXPECT_THAT(refusal(), AllOf(names_the_contents, HasSubstr("bytes where")));
  fs::remove(file);
  EXPECT_THAT(refusal(), AllOf(names_the_contents, HasSubstr("No such file")));
}

TEST_F(CheckpointTest, WhoseFilesAreSwappedSaysWhichTensorIsNotThere) {
  save(odd_config(spec::Precision::fp32), {3, 2, 1});
  // With a manifest that knows of it, as a careless tool would leave them.
  fs::rename(checkpoint_ / "rank-00000.safetensors", checkpoint_ / "x");
  fs::rename(checkpoint_ / "rank-00001.safetensors", checkpoint_ / "rank-00000.safetensors");
  fs::rename(checkpoint_ / "x", checkpoint_ / "rank-00001.safetensors");
  formats::Manifest swapped = manifest();
  std::swap(swapped.files["rank-00000.safetensors"], swapped.files["rank-00001.safetensors"]);
  std::ofstream(checkpoint_ / "manifest.json") << formats::to_json(swapped);
  EXPECT_THAT(refusal(), AllOf(HasSubstr("rank-00000.safetensors: model.embed_tokens.weight["),
                               HasSubstr("not what the manifest says")));
}

TEST_F(CheckpointTest, ReadsBlocksOfColumnsThatAnotherProgramWrote) {
  const spec::RunConfig config = odd_config(spec::Precision::fp32);
  save(config, {0, 1, 1});
  // The embedding again, in two blocks of columns of a file of its own.
  formats::Manifest changed = manifest();
  const account::ParameterTable table = account::parameter_table(config.model);
  const account::Parameter& embedding = *table.find(0, account::Role::token_embedding);
  formats::ManifestTensor& tensor = changed.tensors[embedding.name]["weights"];
  const int64_t rows = tensor.shape[0];
  const int64_t columns = tensor.shape[1];
  std::vector<std::vector<float>> halves(2);
  std::vector<formats::NamedTensor> named;
  tensor.slices.clear();
  for (const int64_t half : {0, 1}) {
    const int64_t begin = half * 7;
    const int64_t width = half == 0 ? 7 : columns - 7;
    auto& values = halves[static_cast<size_t>(half)];
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t c = begin; c < begin + width; ++c) {
        values.push_back(telltale(embedding, StateKind::master, row * columns + c));
      }
    }
    const std::string key = "half " + std::to_string(half);
    named.push_back({key, ConstView{values.data(), DType::f32, {rows, width}}});
    tensor.slices.push_back({"other.safetensors", key, {0, begin}, {rows, width}});
  }
  changed.files["other.safetensors"] =
      formats::write_safetensors((checkpoint_ / "other.safetensors").string(), named);
  std::ofstream(checkpoint_ / "manifest.json") << formats::to_json(changed);
  on_ranks(config, {3, 3, 1}, [&](Rank& rank) {
    rank.load(checkpoint_);
    rank.expect_filled("columns");
  });
}

TEST_F(CheckpointTest, OfOthersIsReadByEveryLayout) {
  for (const char* name : {"gpt2_tiny", "llama_biased", "qwen3_tiny"}) {
    const WeightsPath weights = find_weights(std::string(TESSERA_TESTS_DIR "/fixtures/hf/") + name);
    spec::RunConfig config = config_of(weights);
    config.training.precision = spec::Precision::fp32;
    config.data.tokenizer = weights.path.string();
    std::string first;
    for (const Layout& layout : all_layouts()) {
      if (config.model.num_attention_heads % layout.tp != 0) continue;
      if (config.model.num_hidden_layers % layout.pp != 0) continue;
      on_ranks(config, layout, [&](Rank& rank) {
        load_weights(weights, rank.config, rank.state);
        const std::string hash = weights_hash(rank.state, rank.groups);
        if (rank.groups.world().rank() != 0) return;
        if (first.empty()) first = hash;
        EXPECT_EQ(hash, first) << name << ", " << text_of(layout);
      });
    }
  }
}

}  // namespace
}  // namespace tessera::train
