#include "spec/options.h"

#include <gtest/gtest.h>

#include <set>

#include "spec/assignment.h"
#include "spec/nearest.h"

namespace tessera::spec {
namespace {

Assignment flag(const std::string& key, const std::string& text) {
  Assignment assignment;
  assignment.key = key;
  assignment.text = text;
  assignment.where = "--" + key;
  return assignment;
}

TEST(Options, HaveOneRowForEachKeyWithDocumentation) {
  std::set<std::string_view> keys;
  for (const Option& option : options()) {
    EXPECT_TRUE(keys.insert(option.key).second) << option.key;
    EXPECT_FALSE(option.about.empty()) << option.key;
    EXPECT_FALSE(legal_text(option).empty()) << option.key;
    EXPECT_EQ(find_later_option(option.key), nullptr) << option.key;
  }
}

TEST(Options, WriteWhatTheyRead) {
  // A value unlike the default goes in by text, comes out the same, and moves no other key.
  for (const Option& option : options()) {
    const Value before = option.get(RunConfig{});
    Value other = before;
    if (option.kind == Kind::boolean) other = !std::get<bool>(before);
    if (option.kind == Kind::integer) other = std::get<int64_t>(before) + 3;
    if (option.kind == Kind::real) other = std::get<double>(before) + 0.125;
    if (option.kind == Kind::text) other = std::string("some words");
    if (option.kind == Kind::text_list) other = std::vector<std::string>{"a.txt", "b.txt"};
    if (option.kind == Kind::integer_list) other = std::vector<int64_t>{4, 3, 1};
    if (option.kind == Kind::choice) other = std::string(option.choices.back());
    RunConfig config;
    const auto read = from_text(option, to_text(other));
    ASSERT_TRUE(read.has_value()) << option.key;
    option.set(config, *read);
    EXPECT_EQ(option.get(config), other) << option.key;
    for (const Option& elsewhere : options()) {
      if (elsewhere.key == option.key) continue;
      EXPECT_EQ(elsewhere.get(config), elsewhere.get(RunConfig{})) << elsewhere.key;
    }
  }
}

TEST(Options, HaveLegalDefaults) {
  for (const Option& option : options()) {
    EXPECT_TRUE(is_legal(option, option.get(RunConfig{}))) << option.key;
  }
}

TEST(OptionValue, IsRefusedWhenItsTextIsOfAnotherType) {
  EXPECT_FALSE(from_text(*find_option("training.steps"), "ten"));
  EXPECT_FALSE(from_text(*find_option("training.steps"), "10.5"));
  EXPECT_FALSE(from_text(*find_option("training.steps"), ""));
  EXPECT_FALSE(from_text(*find_option("training.steps"), "99999999999999999999"));
  EXPECT_FALSE(from_text(*find_option("optimizer.lr"), "3e-4x"));
  EXPECT_FALSE(from_text(*find_option("data.document_mask"), "maybe"));
  EXPECT_FALSE(from_text(*find_option("training.precision"), "fp16"));
}

TEST(OptionValue, ReadsListsDividedByCommas) {
  const auto value = from_text(*find_option("data.path"), "a.txt, b c.txt,");
  EXPECT_EQ(std::get<std::vector<std::string>>(*value),
            (std::vector<std::string>{"a.txt", "b c.txt"}));
}

TEST(OptionValue, ReadsListsOfWholeNumbers) {
  const Option& option = *find_option("parallelism.layers_per_stage");
  const Value numbers = std::vector<int64_t>{4, 4, 3, 1};
  EXPECT_EQ(from_text(option, "4, 4,3,1"), numbers);
  EXPECT_EQ(to_text(numbers), "4,4,3,1");
  EXPECT_EQ(coerced(option, Value(int64_t{4})), Value(std::vector<int64_t>{4}));
  EXPECT_EQ(coerced(option, Value(std::vector<std::string>{})), Value(std::vector<int64_t>{}));
  EXPECT_FALSE(coerced(option, Value(std::vector<std::string>{"4"})));
  EXPECT_FALSE(from_text(option, "4,x"));
  EXPECT_FALSE(from_text(option, "4,1.5"));
  EXPECT_FALSE(is_legal(option, Value(std::vector<int64_t>{4, -1})));
}

TEST(OptionValue, SaysWhatIsLegal) {
  EXPECT_EQ(legal_text(*find_option("lr_scheduler.decay")), "cosine, linear, wsd or constant");
  EXPECT_EQ(legal_text(*find_option("metrics.log_freq")), "a whole number, at least 1");
  EXPECT_EQ(legal_text(*find_option("model.dropout")), "a number, at least 0 and below 1");
}

TEST(Assign, PutsKeysOverThePresetWhereverTheyStand) {
  const auto result =
      assign({flag("model.num_hidden_layers", "2"), flag("model.preset", "gpt2-124m")});
  EXPECT_TRUE(result.violations.empty());
  EXPECT_EQ(result.config.model.num_hidden_layers, 2);
  EXPECT_EQ(result.config.model.hidden_size, 768);
  EXPECT_EQ(result.config.model.vocab_size, 50257);
}

TEST(Assign, StartsFromTheFamilyWhereNoPresetIsNamed) {
  const AssignmentResult result =
      assign({flag("model.attention_bias", "qkv"), flag("model.architecture", "llama")});
  EXPECT_TRUE(result.violations.empty());
  EXPECT_FALSE(result.config.model.tie_word_embeddings);
  EXPECT_FALSE(result.config.model.mlp_bias);
  EXPECT_EQ(result.config.model.attention_bias, AttentionBias::qkv);
}

TEST(Assign, TakesABooleanForAChoiceThatHasOne) {
  Assignment typed = flag("model.attention_bias", "");
  typed.value = false;
  EXPECT_EQ(assign({typed}).config.model.attention_bias, AttentionBias::none);
}

TEST(Assign, LetsTheLastWin) {
  const auto result = assign({flag("training.steps", "5"), flag("training.steps", "7")});
  EXPECT_EQ(result.config.training.steps, 7);
}

TEST(Assign, TakesDashesForUnderscores) {
  EXPECT_EQ(assign({flag("data.seq-len", "64")}).config.data.seq_len, 64);
}

TEST(Assign, NamesTheKeyThatWasProbablyMeant) {
  const struct {
    const char* given;
    const char* meant;
  } cases[] = {
      {"training.stpes", "training.steps"},
      {"training.max_steps", "training.steps"},
      {"training.global_batchsize", "training.global_batch_size"},
      {"trainig.steps", "training.steps"},
      {"optimizer.learning_rate", "beta1, beta2, eps, lr, name or weight_decay"},
      {"data.steps", "training.steps or validation.steps"},
      {"optimiser.weight_decay", "optimizer.weight_decay"},
      {"lr_scheduler.warmup", "lr_scheduler.warmup_steps"},
  };
  for (const auto& c : cases) {
    const auto result = assign({flag(c.given, "1")});
    ASSERT_EQ(result.violations.size(), 1u) << c.given;
    EXPECT_EQ(result.violations[0].suggest, c.meant) << c.given;
  }
}

TEST(Assign, RefusesWhatALaterVersionBringsUnlessItIsWhatThisOneDoes) {
  EXPECT_TRUE(assign({flag("checkpoint.async", "false"), flag("optimizer.name", "adamw")})
                  .violations.empty());
  const auto result = assign({flag("optimizer.name", "sgd")});
  ASSERT_EQ(result.violations.size(), 1u);
  EXPECT_EQ(result.violations[0].suggest, "adamw");
  const auto backend = assign({flag("comm.backend", "nccl")});
  ASSERT_EQ(backend.violations.size(), 1u);
  EXPECT_NE(backend.violations[0].why.find("auto, thread, shm or mpi"), std::string::npos);
}

TEST(Assign, NamesThePresetThatWasProbablyMeant) {
  const auto result = assign({flag("model.preset", "gpt2-125m")});
  ASSERT_EQ(result.violations.size(), 1u);
  EXPECT_EQ(result.violations[0].suggest, "gpt2-124m");
}

TEST(AllViolations, CarryThePlaceAndTheWordsOfTheUser) {
  const auto result = assign({flag("training.steps", "+0"), flag("data.path", "a")});
  const auto violations = all_violations(result, 1);
  ASSERT_EQ(violations.size(), 1u);
  EXPECT_EQ(violations[0].where, "--training.steps");
  EXPECT_EQ(violations[0].value, "+0");
}

TEST(AllViolations, JudgeAKeyThatCouldNotBeReadOnce) {
  const auto result = assign({flag("data.seq_len", "many"),
                              flag("model.max_position_embeddings", "8"), flag("data.path", "a")});
  EXPECT_EQ(all_violations(result, 1).size(), 1u);
}

TEST(NearestName, CountsASwapOfNeighboursAsOneEdit) {
  EXPECT_EQ(edit_distance("stpes", "steps"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("seq-len", "SEQ_LEN"), 0);
}

TEST(NearestName, IsEmptyWhenNothingIsNear) {
  EXPECT_EQ(nearest_name("zebra", {"lr", "eps", "beta1"}), "");
  EXPECT_EQ(nearest_name("x", {"lr", "y"}), "");
}

TEST(NearestDivisors, LieOnBothSides) {
  EXPECT_EQ(nearest_divisors(768, 10), (std::vector<int64_t>{8, 12}));
  EXPECT_EQ(nearest_divisors(7, 3), (std::vector<int64_t>{1, 7}));
  EXPECT_EQ(nearest_divisors(6, 9), (std::vector<int64_t>{6}));
}

}  // namespace
}  // namespace tessera::spec
