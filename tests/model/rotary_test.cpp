// The frequencies of rotary positions against transformers' (make_llama_fixtures.py).

#include "model/rotary.h"

#include <gtest/gtest.h>

#include <cmath>

#include "model/fixture.h"

namespace tessera::model::testing {
namespace {

using spec::RopeType;

/// A case of the script.
struct Case {
  std::string name;
  int64_t seq_len;
  spec::ModelConfig config;
};

spec::ModelConfig config_of(int64_t head_dim, int64_t positions, double theta, RopeType type,
                            double factor, int64_t original = 0) {
  spec::ModelConfig config = spec::family_defaults(spec::Architecture::llama);
  config.head_dim = head_dim;
  config.max_position_embeddings = positions;
  config.rope_theta = theta;
  config.rope_scaling.rope_type = type;
  config.rope_scaling.factor = factor;
  config.rope_scaling.original_max_position_embeddings = original;
  return spec::resolved(config);
}

std::vector<Case> cases() {
  spec::ModelConfig all_keys = config_of(96, 65536, 1e4, RopeType::yarn, 16, 4096);
  all_keys.rope_scaling.beta_fast = 24;
  all_keys.rope_scaling.beta_slow = 2;
  all_keys.rope_scaling.attention_factor = 1.25;
  return {
      {"default_128", 16, config_of(128, 8192, 5e5, RopeType::none, 1)},
      {"default_80", 16, config_of(80, 4096, 1e4, RopeType::none, 1)},
      {"linear", 16, config_of(128, 4096, 1e4, RopeType::linear, 8)},
      {"dynamic_within", 2048, config_of(64, 2048, 1e4, RopeType::dynamic, 4)},
      {"dynamic_beyond", 5000, config_of(64, 2048, 1e4, RopeType::dynamic, 4)},
      {"llama3", 16, config_of(128, 131072, 5e5, RopeType::llama3, 8, 8192)},
      {"yarn", 16, config_of(128, 131072, 1e6, RopeType::yarn, 4, 32768)},
      {"yarn_all_keys", 16, all_keys},
  };
}

TEST(RotaryFrequencies, AreThoseOfTransformers) {
  const Fixture expected = read_fixture("llama/rope.safetensors");
  for (const Case& each : cases()) {
    const RotaryFrequencies ours = rotary_frequencies(each.config, each.seq_len);
    const std::vector<double>& theirs = expected.at(each.name + ".inv_freq").values;
    ASSERT_EQ(ours.inv_freq.size(), theirs.size()) << each.name;
    for (size_t i = 0; i < theirs.size(); ++i) {
      // A power is within an ulp there, and rounded right here; a few roundings follow.
      EXPECT_NEAR(ours.inv_freq[i], theirs[i], 4 * 0x1.0p-23 * theirs[i]) << each.name << " " << i;
    }
    EXPECT_FLOAT_EQ(ours.attention_factor,
                    static_cast<float>(expected.at(each.name + ".attention_factor").values[0]))
        << each.name;
  }
}

TEST(RotaryFrequencies, OfDynamicScalingStartToMoveBeyondTheTrainedLength) {
  const spec::ModelConfig plain = config_of(64, 2048, 1e4, RopeType::none, 1);
  const spec::ModelConfig dynamic = config_of(64, 2048, 1e4, RopeType::dynamic, 4);
  EXPECT_EQ(rotary_frequencies(dynamic, 2048).inv_freq, rotary_frequencies(plain, 2048).inv_freq);
  const std::vector<float> beyond = rotary_frequencies(dynamic, 2049).inv_freq;
  EXPECT_EQ(beyond[0], 1);
  EXPECT_LT(beyond[31], rotary_frequencies(plain, 2049).inv_freq[31]);
}

TEST(RotaryFrequencies, OfAHeadOfOnePairAreOne) {
  for (const RopeType type : {RopeType::none, RopeType::dynamic}) {
    EXPECT_EQ(rotary_frequencies(config_of(2, 16, 1e4, type, 2), 64).inv_freq[0], 1);
  }
}

}  // namespace
}  // namespace tessera::model::testing
