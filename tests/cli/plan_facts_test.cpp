// The numbers that the field agrees on, through `tessera plan --ideal` as a user calls it. They are
// written here as papers and textbooks print them, so that no formula is shared with the program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/verbs.h"

namespace tessera::cli {
namespace {

using Json = nlohmann::json;
using testing::HasSubstr;

/// What `tessera plan --ideal --flops-per-gpu 150e12 FLAGS` prints, and its exit status.
struct Printed {
  std::string text;
  int status = 0;
};
Printed plan(const std::string& flags) {
  CLI::App app;
  Printed printed;
  add_plan_verb(app, printed.status);
  testing::internal::CaptureStdout();
  try {
    app.parse("plan --ideal --flops-per-gpu 150e12 " + flags);
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  printed.text = testing::internal::GetCapturedStdout();
  return printed;
}

Json json_of(const std::string& flags) {
  return Json::parse(plan(flags + " --json").text);
}

double number(const Json& json, const std::string& pointer) {
  return json.at(Json::json_pointer(pointer)).get<double>();
}

struct Fact {
  const char* flags;
  const char* pointer;  ///< into the JSON
  double unit;
  const char* printed;  ///< the number in that unit, with the digits that are known
  const char* human;    ///< part of the output without --json; empty: nothing is looked for
};

/// Half of a unit of the last digit printed.
double half_digit(std::string_view printed) {
  const size_t point = printed.find('.');
  if (point == std::string_view::npos) return 0.5;
  return 0.5 * std::pow(10.0, -static_cast<double>(printed.size() - point - 1));
}

void expect(const std::vector<Fact>& facts) {
  for (const Fact& fact : facts) {
    SCOPED_TRACE(std::string(fact.flags) + "  " + fact.pointer);
    EXPECT_NEAR(number(json_of(fact.flags), fact.pointer) / fact.unit, std::stod(fact.printed),
                half_digit(fact.printed) * (1 + 1e-9));
    EXPECT_THAT(plan(fact.flags).text, HasSubstr(fact.human));
  }
}

constexpr double kGB = 1e9, kTB = 1e12;
const std::string kMemory = "/memory_bytes_per_gpu/";

TEST(PlanFacts, BytesOfAParameter) {
  expect({
      {"--params 1e9", "/memory_bytes_per_gpu/state", kGB, "16",
       "16 bytes a parameter: 2 weight, 2 gradient, 12 optimizer"},
      {"--params 1e9 --optimizer adam8bit", "/memory_bytes_per_gpu/state", kGB, "10",
       "10 bytes a parameter"},
      {"--params 1e9 --gradient-dtype fp32", "/memory_bytes_per_gpu/state", kGB, "18",
       "18 bytes a parameter"},
      {"--params 1.5e9", "/memory_bytes_per_gpu/optimizer", kGB, "18", "18.00 GB optimizer"},
      {"--params 1.5e9 --gpus 8 --zero 1", "/memory_bytes_per_gpu/optimizer", kGB, "2.25",
       "2.250 GB optimizer"},
      {"--params 1e12", "/memory_bytes_per_gpu/state", kTB, "16", "16.00 TB"},
      {"--params 1e12", "/memory_bytes_per_gpu/state_without_gradients", kTB, "14",
       "without the gradients' copy 14.00 TB"},
  });
}

TEST(PlanFacts, MemoryOfLlama7B) {
  const char* model = "--model llama-2-7b --seq-len 2048 --recompute full";
  expect({
      {model, "/parameters/without_norms", 1, "6738149376", "6738149376"},
      {model, "/parameters/total", 1, "6738415616", "6738415616"},
      {model, "/memory_bytes_per_gpu/state", kGB, "107.81", "107.81 GB"},
      {model, "/memory_bytes_per_gpu/state_over_gpu_memory", 1, "1.35", "1.35 x a GPU of 80 GB"},
      {model, "/memory_bytes_per_gpu/activations", kGB, "0.822", "activations  0.822 GB"},
      {model, "/memory_bytes_per_gpu/total", kGB, "108.63", "108.63 GB: does not fit"},
      {"--model llama-2-7b --tp 8", "/memory_bytes_per_gpu/state", kGB, "13.48", "13.48 GB"},
  });
  EXPECT_EQ(plan(model).status, kDoesNotFit);
}

TEST(PlanFacts, MemoryOfLlama70B) {
  const char* model = "--model llama-2-70b";
  expect({
      {model, "/parameters/attention_per_layer", 1, "150994944", "150994944 attention"},
      {model, "/parameters/mlp_per_layer", 1, "704643072", "704643072 MLP"},
      {model, "/parameters/without_norms", 1, "68975329280", "68975329280"},
      {model, "/memory_bytes_per_gpu/state", kGB, "1103.61", "1103.61 GB"},
      {"--model llama-2-70b --tp 8", "/memory_bytes_per_gpu/state", kGB, "137.95", "137.95 GB"},
      {"--model llama-2-70b --tp 8 --pp 2", "/memory_bytes_per_gpu/state", kGB, "68.98",
       "68.98 GB"},
      {"--params 13e9", "/memory_bytes_per_gpu/state", kGB, "208", "208.00 GB"},
      {"--params 13e9", "/smallest_tp_whose_state_fits", 1, "4", "smallest tp whose state fits: 4"},
  });
}

TEST(PlanFacts, MemoryOfZeroAsItsPaperHasIt) {
  const char* state = "/memory_bytes_per_gpu/state";
  expect({
      {"--params 7.5e9 --gpus 64 --zero 0", state, kGB, "120", "120.00 GB"},
      {"--params 7.5e9 --gpus 64 --zero 1", state, kGB, "31.4", "31.41 GB"},
      {"--params 7.5e9 --gpus 64 --zero 2", state, kGB, "16.6", "16.64 GB"},
      {"--params 7.5e9 --gpus 64 --zero 3", state, kGB, "1.88", "1.875 GB"},
      {"--params 7.5e9 --gpus 8 --zero 0", state, kGB, "120",
       "120.00 GB = 15.00 GB weights + 15.00 GB gradients + 90.00 GB optimizer"},
      {"--params 7.5e9 --gpus 8 --zero 1", state, kGB, "41.25", "41.25 GB"},
      {"--params 7.5e9 --gpus 8 --zero 2", state, kGB, "28.1", "28.1"},
      {"--params 7.5e9 --gpus 8 --zero 3", state, kGB, "15", "15.00 GB"},
  });
}

TEST(PlanFacts, MemoryOfLlama7BOnEightGpusWithZero1) {
  const std::string flags = "--model llama-2-7b --gpus 8 --zero 1";
  expect({
      {flags.c_str(), "/memory_bytes_per_gpu/state", kGB, "37.1", "37.06 GB"},
      {flags.c_str(), "/memory_bytes_per_gpu/weights", kGB, "13.5", "13.48 GB weights"},
      {flags.c_str(), "/memory_bytes_per_gpu/gradients", kGB, "13.5", "13.48 GB gradients"},
      {flags.c_str(), "/memory_bytes_per_gpu/optimizer", kGB, "10.1", "10.11 GB optimizer"},
      {flags.c_str(), "/memory_bytes_per_gpu/state_floor", kGB, "27.0", "26.95 GB"},
  });
  const Json json = json_of(flags);
  EXPECT_NEAR(number(json, kMemory + "state_unsharded") / number(json, kMemory + "state"), 2.9,
              0.05);
  EXPECT_THAT(plan(flags).text, HasSubstr("sharding makes it 2.9 x smaller"));
  const Printed printed = plan(flags);
  EXPECT_EQ(printed.status, kDone);
  EXPECT_THAT(printed.text, HasSubstr(": fits"));
}

TEST(PlanFacts, ActivationsByTheClosedFormulas) {
  // Korthikanti et al. 2022: 34 s b h a layer, and 5 a s² b of scores where attention keeps them;
  // GPT-3 in one sequence of 2,048 tokens: h 12,288, 96 heads, 96 layers.
  const char* activations = "/memory_bytes_per_gpu/activations";
  expect({
      {"--model gpt3-175b --seq-len 2048", activations, kGB, "82.1", "82.14 GB"},
      {"--model gpt3-175b --seq-len 2048 --stack megatron-lm-2021", activations, kGB, "275.4",
       "275.41 GB"},
      {"--model gpt3-175b --seq-len 2048 --stack megatron-lm-2021 --recompute selective",
       activations, kGB, "82.1", "82.14 GB"},
      {"--model gpt3-175b --seq-len 2048 --tp 8", activations, kGB, "31.4", "31.41 GB"},
      {"--model gpt3-175b --seq-len 2048 --tp 8 --sp", activations, kGB, "10.27", "10.27 GB"},
  });
}

TEST(PlanFacts, BytesOfARing) {
  for (const auto& [ranks, factor] : std::vector<std::pair<int, double>>{
           {2, 1.0}, {3, 1.33333333333}, {5, 1.6}, {8, 1.75}, {64, 1.96875}}) {
    const Json json = json_of("--params 1e9 --gpus " + std::to_string(ranks));
    EXPECT_NEAR(number(json, "/communication/dp/bytes") / number(json, "/gradient_bytes_per_gpu"),
                factor, 1e-9);
  }
}

TEST(PlanFacts, TrafficOfDataParallelism) {
  const char* flags = "--model llama-2-7b --gpus 8";
  expect({
      {flags, "/gradient_bytes_per_gpu", kGB, "13.5", "of 13.48 GB of gradients"},
      {flags, "/traffic_bytes_per_gpu_per_step/dp", kGB, "23.6", "dp sends 23.58 GB"},
      {flags, "/communication/dp/inter_s", 1, "0.47", "472 ms between nodes"},
  });
  const auto sent = [](int stage) {
    return number(json_of("--model llama-2-7b --gpus 8 --zero " + std::to_string(stage)),
                  "/traffic_bytes_per_gpu_per_step/dp");
  };
  EXPECT_DOUBLE_EQ(sent(1), sent(0));
  EXPECT_DOUBLE_EQ(sent(2), sent(0));
  EXPECT_DOUBLE_EQ(sent(3), 1.5 * sent(0));
}

TEST(PlanFacts, TrafficOfTensorAndPipelineParallelism) {
  const char* flags = "--model llama-2-7b --tp 4 --seq-len 4096";
  expect({
      {flags, "/layer/tp/bytes", 1e6, "201", "of a layer and a micro-batch 201 MB"},
      {flags, "/layer/tp/intra_s", 1e-3, "0.45", "447 µs inside a node"},
      {flags, "/layer/tp/inter_s", 1e-3, "4.0", "4.03 ms between nodes"},
      {flags, "/layer/compute_s", 1e-3, "8.3", "its compute takes 8.29 ms"},
      {flags, "/layer/tp_over_compute_intra", 1, "0.05", "tp takes 0.05 of it inside a node"},
      {flags, "/layer/parameters", 1, "202375168", ""},
      {flags, "/layer/parameters_per_gpu", 1e6, "50.6", "a GPU holds 5.059e+07"},
      {flags, "/memory_bytes_per_gpu/state", kGB, "27.0", "26.95 GB"},
      {"--model llama-2-7b --pp 2 --seq-len 4096", "/communication/pp_boundary/bytes", 1e6, "34",
       "33.6 MB a boundary"},
  });
}

TEST(PlanFacts, TimeToTrain) {
  const char* tokens = "--model llama-2-7b --tokens 2e12";
  expect({
      {tokens, "/flops_total", 1e22, "8.1", "8.09e+22 FLOPs"},
      {tokens, "/train_days", 365.25, "17.1", "17.1 years"},
      // Books say 98: 97.48 days, rounded once too often.
      {"--model llama-2-7b --tokens 2e12 --gpus 64", "/train_days", 1, "97.5", "97.5 days"},
      {"--model llama-2-7b --tokens 2e12 --gpus 1024", "/train_days", 1, "6", "6.09 days"},
      {"--model llama-2-7b --gpus 8 --global-batch 1024", "/sequences_per_replica", 1, "128",
       "128 a replica"},
      {"--model llama-2-7b --gpus 8 --global-batch 1024", "/time/compute_s", 60, "2.4",
       "2.36 min of compute"},
      {"--model llama-2-7b --gpus 64 --micro-batch 16", "/global_batch", 1, "1024",
       "1024 sequences"},
  });
}

TEST(PlanFacts, ThreeAxesTogether) {
  const char* flags =
      "--model llama-2-7b --gpus 256 --tp 8 --pp 4 --dp 8 --zero 1 --global-batch 1024 "
      "--micro-batch 1 --tokens 2e12";
  expect({
      {flags, "/gpus", 1, "256", "256 x"},
      {flags, "/nodes", 1, "32", "32 nodes"},
      {flags, "/memory_bytes_per_gpu/state", kGB, "1.16", "1.158 GB"},
      {flags, "/pipeline/micro_batches", 1, "128", "128 micro-batches"},
      {flags, "/pipeline/bubble_fraction", 0.01, "2.3", "idle 2.3 % of the step"},
      {flags, "/train_days", 1, "25", "24.9 days"},
      {"--model llama-2-7b --tp 8 --pp 16 --dp 128", "/gpus", 1, "16384", "16384 x"},
      {"--model llama-2-7b --tp 8 --pp 16 --dp 128", "/parameters/parts", 1, "128",
       "a GPU holds 1/128"},
  });
}

TEST(PlanFacts, IdleTimeOfAPipeline) {
  struct Row {
    int stages, micro_batches;
    double step, busy, of_step, of_useful;  ///< shares in per cent
  };
  for (const Row& row :
       {Row{4, 4, 21, 12, 42.9, 75}, Row{4, 16, 57, 48, 15.8, 18.75}, Row{4, 32, 105, 96, 8.6, 9.4},
        Row{8, 8, 45, 24, 46.7, 87.5}, Row{16, 4, 57, 12, 79, 375}, Row{4, 12, 45, 36, 20, 25},
        Row{8, 32, 117, 96, 17.9, 21.9}}) {
    const std::string flags = "--model llama-2-7b --dp 1 --micro-batch 1 --pp " +
                              std::to_string(row.stages) + " --global-batch " +
                              std::to_string(row.micro_batches);
    SCOPED_TRACE(flags);
    const Json json = json_of(flags);
    EXPECT_EQ(number(json, "/pipeline/step_ticks"), row.step);
    EXPECT_EQ(number(json, "/pipeline/busy_ticks"), row.busy);
    EXPECT_NEAR(100 * number(json, "/pipeline/bubble_fraction"), row.of_step,
                row.of_step == 79 ? 0.5 : 0.05);
    EXPECT_NEAR(100 * number(json, "/pipeline/bubble_over_useful"), row.of_useful, 0.05);
  }
}

TEST(PlanFacts, InterleavingDividesTheBubble) {
  const Json json = json_of(
      "--model llama-2-7b --dp 1 --pp 4 --virtual-stages 2 --global-batch 16 --micro-batch 1");
  EXPECT_NEAR(number(json, "/pipeline/bubble_over_useful"), 3.0 / 32, 1e-9);
}

}  // namespace
}  // namespace tessera::cli
