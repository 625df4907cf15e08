#include "kernels/embedding.h"

#include "kernels/operands.h"

namespace tessera::kernels::testing {
namespace {

constexpr int64_t kBatch = 3, kSeqLen = 11, kVocabulary = 7, kPositions = 12;

Operand token_ids() {
  Operand ids(DType::i32, {kBatch, kSeqLen});
  for (int64_t i = 0; i < ids.size(); ++i) ids.set(i, static_cast<double>(i * i % kVocabulary));
  return ids;
}

TEST(EmbeddingForward, AddsTheTokensRowAndThePositions) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    for (int64_t C : lengths()) {
      if (C == 0) continue;
      Operand ids = token_ids(), y(dtype, {kBatch, kSeqLen, C}, 1);
      Operand tokens(dtype, {kVocabulary, C}), positions(dtype, {kPositions, C});
      tokens.fill(1), positions.fill(2);
      embedding_forward(y.view(), ids.view(), tokens.view(), positions.view());
      EXPECT_TRUE(y.guards_intact());
      for (int64_t i = 0; i < y.size(); ++i) {
        const int64_t row = i / C, c = i % C;
        const double sum = tokens.at(static_cast<int64_t>(ids.at(row)) * C + c) +
                           positions.at(row % kSeqLen * C + c);
        ASSERT_NEAR(y.at(i), sum, unit_roundoff(dtype) * std::abs(sum)) << "C " << C;
      }
    }
  }
}

TEST(EmbeddingForward, CopiesTokensWithoutPositions) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    Operand ids = token_ids(), y(dtype, {kBatch, kSeqLen, 5}), tokens(dtype, {kVocabulary, 5});
    tokens.fill(1);
    embedding_forward(y.view(), ids.view(), tokens.view(), {});
    for (int64_t i = 0; i < y.size(); ++i) {
      EXPECT_EQ(y.at(i), tokens.at(static_cast<int64_t>(ids.at(i / 5)) * 5 + i % 5));
    }
  }
}

struct Gradients {
  Gradients(DType sums, int64_t V, int64_t P, int64_t C)
      : tokens(sums, {V, C}), positions(sums, {P, C}, 1) {
    tokens.fill(8), positions.fill(9);
  }
  Operand tokens, positions;
};

TEST(EmbeddingBackward, SumsEachRowInTheOrderOfTokens) {
  for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
    for (int64_t C : {1, 8, 17, 33, 200}) {
      const DType sums = dtype == DType::f64 ? DType::f64 : DType::f32;
      Operand ids = token_ids(), dy(dtype, {kBatch, kSeqLen, C}, 1);
      dy.fill(3);
      Gradients expected(sums, kVocabulary, kPositions, C), got(sums, kVocabulary, kPositions, C);
      for (int64_t i = 0; i < dy.size(); ++i) {
        const int64_t row = i / C, c = i % C;
        const int64_t t = static_cast<int64_t>(ids.at(row)) * C + c;
        const int64_t p = row % kSeqLen * C + c;
        expected.tokens.set(t, expected.tokens.at(t) + dy.at(i));
        expected.positions.set(p, expected.positions.at(p) + dy.at(i));
      }
      for (Isa set : {Isa::ref, Isa::avx2, Isa::avx512}) {
        IsaLimit limit(set);
        Gradients again(sums, kVocabulary, kPositions, C);
        embedding_backward(again.tokens.view(), again.positions.view(), dy.view(), ids.view());
        EXPECT_EQ(again.tokens.raw(), expected.tokens.raw()) << "C " << C;
        EXPECT_EQ(again.positions.raw(), expected.positions.raw()) << "C " << C;
        EXPECT_TRUE(again.tokens.guards_intact() && again.positions.guards_intact());
      }
    }
  }
}

TEST(EmbeddingBackward, DoesNotDependOnTheNumberOfThreads) {
  const int64_t B = 2, T = 300, C = 400;
  Operand ids(DType::i32, {B, T}), dy(DType::bf16, {B, T, C});
  for (int64_t i = 0; i < B * T; ++i) ids.set(i, static_cast<double>(i * 31 % 17));
  dy.fill(3);
  for (DType sums : {DType::f32, DType::bf16}) {
    Gradients one(sums, 17, T, C), three(sums, 17, T, C);
    {
      TeamOf team(1);
      embedding_backward(one.tokens.view(), one.positions.view(), dy.view(), ids.view());
    }
    {
      TeamOf team(3);
      embedding_backward(three.tokens.view(), three.positions.view(), dy.view(), ids.view());
    }
    EXPECT_EQ(one.tokens.raw(), three.tokens.raw());
    EXPECT_EQ(one.positions.raw(), three.positions.raw());
  }
}

TEST(Embedding, OfPartsOfTheVocabularyAddsUpToThatOfTheWhole) {
  constexpr int64_t C = 9;
  Operand ids = token_ids(), tokens(DType::f32, {kVocabulary, C}), dy(DType::f32, {3, 11, C});
  Operand whole(DType::f32, {kBatch, kSeqLen, C});
  tokens.fill(1), dy.fill(3);
  embedding_forward(whole.view(), ids.view(), tokens.view(), {});
  Gradients expected(DType::f32, kVocabulary, kPositions, C);
  embedding_backward(expected.tokens.view(), {}, dy.view(), ids.view());
  Gradients got(DType::f32, kVocabulary, kPositions, C);
  std::vector<double> sum(static_cast<size_t>(whole.size()));
  for (const auto& [first, count] : {std::pair{0, 3}, {3, 3}, {6, 1}, {7, 0}}) {
    Operand part(DType::f32, whole.view().shape, 1);
    const auto rows = [&](Operand& table) { return table.view().slice(first * C, {count, C}); };
    embedding_forward(part.view(), ids.view(), rows(tokens), {}, first);
    for (int64_t i = 0; i < part.size(); ++i) sum[static_cast<size_t>(i)] += part.at(i);
    embedding_backward(rows(got.tokens), {}, dy.view(), ids.view(), first);
    EXPECT_TRUE(part.guards_intact());
  }
  for (int64_t i = 0; i < whole.size(); ++i) {
    EXPECT_EQ(sum[static_cast<size_t>(i)], whole.at(i));
  }
  EXPECT_EQ(got.tokens.raw(), expected.tokens.raw());
}

TEST(EmbeddingForward, GivesATokenWithoutARowItsPositionAlone) {
  Operand ids = token_ids(), y(DType::f32, {kBatch, kSeqLen, 5}), tokens(DType::f32, {2, 5});
  Operand positions(DType::f32, {kPositions, 5});
  tokens.fill(1), positions.fill(2);
  embedding_forward(y.view(), ids.view(), tokens.view(), positions.view(), kVocabulary);
  for (int64_t i = 0; i < y.size(); ++i) EXPECT_EQ(y.at(i), positions.at(i % (kSeqLen * 5)));
}

TEST(EmbeddingBackward, GoesWithoutPositions) {
  Operand ids = token_ids(), dy(DType::f32, {kBatch, kSeqLen, 9});
  dy.fill(3);
  Gradients with(DType::f32, kVocabulary, kPositions, 9);
  Gradients without(DType::f32, kVocabulary, kPositions, 9);
  embedding_backward(with.tokens.view(), with.positions.view(), dy.view(), ids.view());
  embedding_backward(without.tokens.view(), {}, dy.view(), ids.view());
  EXPECT_EQ(with.tokens.raw(), without.tokens.raw());
}

}  // namespace
}  // namespace tessera::kernels::testing
