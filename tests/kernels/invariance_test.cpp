// What numerics that do not depend on the layout stand on: a sequence's result is the same to the
// bit whatever the number of threads and whichever sequences share its batch.

#include <functional>
#include <map>

#include "kernels/attention.h"
#include "kernels/dropout.h"
#include "kernels/elementwise.h"
#include "kernels/layernorm.h"
#include "kernels/operands.h"
#include "kernels/rmsnorm.h"
#include "kernels/rope.h"
#include "kernels/swiglu.h"

namespace tessera::kernels::testing {
namespace {

constexpr int64_t kBatch = 5, kSeqLen = 67, kHeads = 6, kGroups = 3, kDim = 20;
constexpr int64_t kQkv = (kHeads + 2 * kGroups) * kDim, kContext = kHeads * kDim;
constexpr int64_t kWidth = 117;  // divides by no vector; B · T · width is enough for a team

/// Tensors by name, all of them cut by sequences: [B, ...]. An operation reads some, writes others.
using Tensors = std::map<std::string, Operand>;

/// An operation on B sequences.
struct Case {
  const char* name;
  std::function<Tensors(DType dtype, int64_t batch)> make;
  std::function<void(Tensors& all, int64_t batch)> run;
};

Operand drawn(DType dtype, int64_t batch, int64_t row, uint64_t seed) {
  Operand operand(dtype, {batch, kSeqLen, row / kSeqLen});
  operand.fill(seed, -2, 2);
  return operand;
}

void add_tensor(Tensors& all, const std::string& name, DType dtype, int64_t batch, int64_t width) {
  all.emplace(name, drawn(dtype, batch, kSeqLen * width, 11 * all.size() + 1));
}

Operand drawn_vector(DType dtype, uint64_t seed) {
  Operand operand(dtype, {kWidth});
  operand.fill(seed, 0.5, 1.5);
  return operand;
}

View rows_of(Operand& operand) {
  const View view = operand.view();
  return view.reshaped({view.shape[0] * view.shape[1], view.shape[2]});
}

Case norm_case(const char* name, bool layer) {
  return {name,
          [](DType dtype, int64_t batch) {
            Tensors all;
            for (const char* tensor : {"x", "dy", "dresidual", "y", "dx"}) {
              add_tensor(all, tensor, dtype, batch, kWidth);
            }
            for (const char* statistic : {"mean", "rstd"}) {
              add_tensor(all, statistic, DType::f32, batch, 1);
            }
            return all;
          },
          [layer](Tensors& all, int64_t) {
            Operand weight = drawn_vector(all.at("x").dtype(), 3);
            Operand bias = drawn_vector(all.at("x").dtype(), 4);
            const auto rows = [&](const char* tensor) { return rows_of(all.at(tensor)); };
            const View mean = all.at("mean").view(), rstd = all.at("rstd").view();
            if (layer) {
              layernorm_forward(rows("y"), mean, rstd, rows("x"), weight.view(), bias.view(),
                                1e-5f);
              layernorm_backward_input(rows("dx"), rows("dresidual"), rows("dy"), rows("x"),
                                       weight.view(), mean, rstd);
            } else {
              rmsnorm_forward(rows("y"), rstd, rows("x"), weight.view(), 1e-5f);
              rmsnorm_backward_input(rows("dx"), rows("dresidual"), rows("dy"), rows("x"),
                                     weight.view(), rstd);
            }
          }};
}

Case attention_case(const char* name, float dropout, bool documents) {
  return {name,
          [](DType dtype, int64_t batch) {
            Tensors all;
            add_tensor(all, "qkv", dtype, batch, kQkv);
            add_tensor(all, "dout", dtype, batch, kContext);
            add_tensor(all, "out", dtype, batch, kContext);
            add_tensor(all, "lse", DType::f32, batch, kHeads);
            add_tensor(all, "dqkv", dtype, batch, kQkv);
            add_tensor(all, "samples", DType::i64, batch, 1);
            add_tensor(all, "doc_start", DType::i32, batch, 1);
            for (int64_t b = 0; b < batch; ++b) {
              for (int64_t t = 0; t < kSeqLen; ++t) {
                all.at("doc_start").set(b * kSeqLen + t, static_cast<double>(t - t % (17 + b)));
                all.at("samples").set(b * kSeqLen + t, static_cast<double>(100 + b));
              }
            }
            return all;
          },
          [=](Tensors& all, int64_t batch) {
            const AttentionShape shape{batch, kSeqLen, kHeads, kGroups, kDim, 0.3f};
            Operand samples(DType::i64, {batch});
            for (int64_t b = 0; b < batch; ++b) samples.set(b, all.at("samples").at(b * kSeqLen));
            Operand scratch(DType::u8, {attention_scratch_bytes(shape, num_threads())});
            const ConstView starts =
                documents ? ConstView(all.at("doc_start").view()) : ConstView{};
            const DropoutKey key{dropout, 7, 3, 2};
            const auto of = [&](const char* tensor) { return all.at(tensor).view(); };
            attention_forward(of("out"), of("lse"), of("qkv"), starts, samples.view(), key,
                              scratch.view(), shape);
            attention_backward(of("dqkv"), of("dout"), of("qkv"), of("out"), of("lse"), starts,
                               samples.view(), key, scratch.view(), shape);
          }};
}

/// x and dy to y and dx, all of one width.
Case simple_case(const char* name, int64_t wide, int64_t narrow,
                 const std::function<void(Tensors&, int64_t)>& run) {
  return {name,
          [=](DType dtype, int64_t batch) {
            Tensors all;
            add_tensor(all, "x", dtype, batch, wide);
            add_tensor(all, "dy", dtype, batch, narrow);
            add_tensor(all, "y", dtype, batch, narrow);
            add_tensor(all, "dx", dtype, batch, wide);
            return all;
          },
          run};
}

void run_rope(Tensors& all, int64_t batch) {
  Operand cos(DType::f32, {kSeqLen, kDim / 2}), sin(DType::f32, {kSeqLen, kDim / 2});
  std::vector<float> inv_freq;
  for (int64_t i = 0; i < kDim / 2; ++i) inv_freq.push_back(1 / static_cast<float>(1 + i));
  rope_angles(cos.view(), sin.view(), inv_freq.data(), 1.1f);
  const RopeShape shape{batch, kSeqLen, kHeads + kGroups, kDim, kQkv};
  rope_forward(all.at("x").view(), cos.view(), sin.view(), shape);
  rope_backward(all.at("dx").view(), cos.view(), sin.view(), shape);
}

void run_dropout(Tensors& all, int64_t batch) {
  // Sample numbers are those of the sequences' draws: the cut below keeps them with their rows.
  Operand samples(DType::i64, {batch});
  for (int64_t b = 0; b < batch; ++b) {
    samples.set(b, std::floor(1e6 * std::abs(all.at("x").at(b * kSeqLen * kWidth))));
  }
  const DropoutKey key{0.3f, 7, 3, 2};
  dropout_forward(all.at("y").view(), all.at("x").view(), samples.view(), key);
  dropout_backward(all.at("dx").view(), all.at("dy").view(), samples.view(), key);
}

void run_gelu(Tensors& all, int64_t) {
  gelu_forward(all.at("y").view(), all.at("x").view());
  gelu_backward(all.at("dx").view(), all.at("dy").view(), all.at("x").view());
}

void run_swiglu(Tensors& all, int64_t) {
  swiglu_forward(rows_of(all.at("y")), rows_of(all.at("x")));
  swiglu_backward(rows_of(all.at("dx")), rows_of(all.at("dy")), rows_of(all.at("x")));
}

std::vector<Case> cases() {
  return {norm_case("layernorm", true),
          norm_case("rmsnorm", false),
          attention_case("attention", 0, false),
          attention_case("attention with documents", 0, true),
          attention_case("attention with documents and dropout", 0.2f, true),
          simple_case("rope", kQkv, kContext, run_rope),
          simple_case("swiglu", 2 * kWidth, kWidth, run_swiglu),
          simple_case("gelu", kWidth, kWidth, run_gelu),
          simple_case("dropout", kWidth, kWidth, run_dropout)};
}

/// The sequences [first, first + count) of every tensor.
Tensors cut(const Tensors& all, int64_t first, int64_t count) {
  Tensors part;
  for (const auto& entry : all) {
    const Operand& from = entry.second;
    const int64_t row = from.size() / kBatch;
    Operand to(from.dtype(), {count, kSeqLen, row / kSeqLen}, 3);
    for (int64_t i = 0; i < count * row; ++i) to.set(i, from.at(first * row + i));
    part.emplace(entry.first, std::move(to));
  }
  return part;
}

std::map<std::string, std::string> bytes_of(const Tensors& all) {
  std::map<std::string, std::string> bytes;
  for (const auto& entry : all) bytes[entry.first] = entry.second.raw();
  return bytes;
}

class SameToTheBit : public ::testing::TestWithParam<std::tuple<Isa, DType>> {};

std::string name_of_case(const ::testing::TestParamInfo<std::tuple<Isa, DType>>& of) {
  const Isa set = std::get<0>(of.param);
  const std::string about = set == Isa::ref ? "ref" : set == Isa::avx2 ? "avx2" : "avx512";
  return about + "_" + core::name_of(std::get<1>(of.param));
}

INSTANTIATE_TEST_SUITE_P(On, SameToTheBit,
                         ::testing::Combine(::testing::Values(Isa::ref, Isa::avx2, Isa::avx512),
                                            ::testing::Values(DType::f32, DType::bf16)),
                         name_of_case);

TEST_P(SameToTheBit, WhateverTheNumberOfThreads) {
  const IsaLimit limit(std::get<0>(GetParam()));
  for (const Case& each : cases()) {
    std::map<std::string, std::string> results;
    for (const int threads : {1, 2, 3, 8}) {
      const TeamOf team(threads);
      Tensors all = each.make(std::get<1>(GetParam()), kBatch);
      each.run(all, kBatch);
      if (threads == 1) results = bytes_of(all);
      EXPECT_EQ(bytes_of(all) == results, true) << each.name << ", threads " << threads;
    }
  }
}

TEST_P(SameToTheBit, WhicheverSequencesShareABatch) {
  const IsaLimit limit(std::get<0>(GetParam()));
  for (const Case& each : cases()) {
    Tensors whole = each.make(std::get<1>(GetParam()), kBatch);
    const Tensors before = cut(whole, 0, kBatch);
    each.run(whole, kBatch);
    int64_t first = 0;
    for (const int64_t count : {1, 3, 1}) {
      Tensors part = cut(before, first, count);
      each.run(part, count);
      EXPECT_EQ(bytes_of(part) == bytes_of(cut(whole, first, count)), true)
          << each.name << ", sequences from " << first;
      first += count;
    }
  }
}

}  // namespace
}  // namespace tessera::kernels::testing
