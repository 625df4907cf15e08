// Every explanation is calculated anew, and held to the number that it explains.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/calculator.h"
#include "cli/verbs.h"

namespace tessera::cli {
namespace {

using Json = nlohmann::json;

std::string printed(const std::string& flags) {
  CLI::App app;
  int status = 0;
  add_plan_verb(app, status);
  testing::internal::CaptureStdout();
  try {
    app.parse("plan --explain " + flags);
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  return testing::internal::GetCapturedStdout();
}

/// "memory_bytes_per_gpu.state" as a JSON pointer.
Json::json_pointer pointer_to(std::string quantity) {
  std::replace(quantity.begin(), quantity.end(), '.', '/');
  return Json::json_pointer("/" + quantity);
}

/// Six digits are printed of each value; a difference of two loses some of them.
constexpr double kDigits = 2e-3;

void expect_near(double value, double expected) {
  EXPECT_NEAR(value, expected, kDigits * std::abs(expected) + 1e-12);
}

/// Numbers without which a plan would have a figure that nobody can check.
std::set<std::string> numbers_of(const Json& plan) {
  std::set<std::string> names = {"flops_total", "mfu",       "hfu",      "tokens_per_s",
                                 "train_days",  "gpu_hours", "cost_usd", "flops_per_step"};
  for (const char* section : {"memory_bytes_per_gpu", "traffic_bytes_per_gpu_per_step", "time"}) {
    for (const auto& [name, value] : plan.at(section).items()) {
      if (value.get<double>() > 0) names.insert(std::string(section) + '.' + name);
    }
  }
  for (const char* name : {"micro_batches", "step_ticks", "busy_ticks", "bubble_fraction"}) {
    names.insert(std::string("pipeline.") + name);
  }
  // These compare a plan with others.
  for (const char* name :
       {"state_unsharded", "state_floor", "state_without_gradients", "state_over_gpu_memory"}) {
    names.erase(std::string("memory_bytes_per_gpu.") + name);
  }
  return names;
}

class Explained : public testing::TestWithParam<std::string> {};

TEST_P(Explained, EveryNumberIsWhatItsFormulaMakes) {
  const std::string flags = GetParam() + " --tokens 1e12";
  SCOPED_TRACE(flags);
  const Json plan = Json::parse(printed(flags + " --json"));
  std::set<std::string> missing = numbers_of(plan);
  for (const Json& reason : plan.at("why")) {
    const std::string quantity = reason.at("quantity"), values = reason.at("values");
    SCOPED_TRACE(quantity + " = " + values);
    const size_t equals = values.rfind(" = ");
    ASSERT_NE(equals, std::string::npos);
    EXPECT_FALSE(reason.at("formula").get<std::string>().empty());
    const double result = Calculator(values.substr(equals + 3)).evaluate();
    expect_near(Calculator(values.substr(0, equals)).evaluate(), result);
    if (plan.contains(pointer_to(quantity))) {
      expect_near(result, plan.at(pointer_to(quantity)).get<double>());
    } else {
      EXPECT_TRUE(quantity.starts_with("layer.")) << "explains what is not there";
    }
    missing.erase(quantity);
  }
  EXPECT_THAT(missing, testing::IsEmpty());
  EXPECT_GE(plan.at("not_modelled").size(), 5U);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, Explained,
    testing::Values(
        "--model llama-2-7b", "--model llama-3-8b --gpus 64 --tp 8 --sp --recompute full --zero 1",
        "--model llama-2-7b --gpus 64 --tp 2 --pp 4 --micro-batch 2 --accumulate 32 --zero 2",
        "--model llama-2-70b --cluster a100-80g --gpus 128 --pp 8 --tp 8 --virtual-stages 5 "
        "--global-batch 256",
        "--model gpt2-1558m --gpus 16 --pp 2 --schedule gpipe --accumulate 24 --precision fp16",
        "--model llama-3-70b --gpus 64 --zero 3 --shard 16 --recompute selective",
        "--model llama-3-8b --gpus 16 --cp 4 --seq-len 65536 --precision fp8",
        "--model llama-3-8b --gpus 16 --pp 4 --schedule zb-h1 --accumulate 9",
        "--model llama-3-8b --gpus 16 --pp 4 --schedule zb-v --accumulate 20",
        "--model llama-3-8b --gpus 8 --fine-tune lora --zero 2",
        "--model llama-3-8b --gpus 8 --fine-tune qlora --zero 3",
        "--model mixtral-8x7b --gpus 64 --ep 8 --tp 2 --pp 2 --zero 1",
        "--model deepseek-v3 --cluster h800 --gpus 2048 --pp 16 --ep 64 --zero 1 --accumulate 60 "
        "--optimizer muon",
        "--model qwen3-30b-a3b --gpus 16 --tp 2 --optimizer adam8bit", "--ideal --model llama-2-7b",
        "--ideal --model gpt3-175b --gpus 64 --tp 8 --pp 8 --stack megatron-lm-2021",
        "--ideal --model llama-2-7b --gpus 256 --tp 8 --pp 4 --zero 1 --accumulate 128",
        "--ideal --flops-per-gpu 150e12 --params 7.5e9 --gpus 64 --zero 2",
        "--ideal --model llama-3-70b --gpus 64 --zero 3 --shard 16 --recompute selective",
        "--ideal --model llama-3-8b --gpus 32 --cp 2 --tp 2 --sp --pp 2 --virtual-stages 4 "
        "--accumulate 8 --recompute full",
        "--ideal --model mixtral-8x7b --gpus 64 --ep 8 --tp 2 --pp 2 --zero 1 --schedule gpipe",
        "--ideal --model llama-3-8b --gpus 8 --fine-tune lora --zero 2"));

TEST(Explanation, IsPrintedForPeople) {
  const std::string text = printed("--ideal --params 7e9 --gpus 8 --zero 1");
  EXPECT_THAT(text,
              testing::HasSubstr("memory_bytes_per_gpu.optimizer\n"
                                 "  = parameters of a device * bytes / ranks that share them\n"
                                 "  = 7000000000 * 12 / 8 = 10500000000\n"));
  EXPECT_THAT(text, testing::HasSubstr("not modelled\n"));
}

}  // namespace
}  // namespace tessera::cli
