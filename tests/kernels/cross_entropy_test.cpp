#include "kernels/cross_entropy.h"

#include "kernels/guarded.h"

namespace tessera::kernels {
namespace {

using oracle::available_isas;
using oracle::bf16;
using oracle::epsilon;
using oracle::Guarded;
using oracle::Threads;

std::vector<int32_t> some_labels(int64_t rows, int64_t vocab) {
  std::vector<int32_t> labels(rows);
  for (int64_t i = 0; i < rows; ++i) labels[i] = static_cast<int32_t>((i * 7 + vocab - 1) % vocab);
  if (rows > 2) labels[1] = -1;
  return labels;
}

ConstView view_of(const std::vector<int32_t>& labels) {
  return {labels.data(), core::DType::i32, {static_cast<int64_t>(labels.size())}};
}

/// Losses and gradients against the definition in fp64. An exponential is right to 2 eps, its
/// argument (at most `spread` in size) to spread · eps, and their sum to another V · eps at most.
template <class T>
void expect_cross_entropy(int64_t rows, int64_t vocab, int64_t padding, int64_t offset) {
  using F = std::conditional_t<std::is_same_v<T, double>, double, float>;
  SCOPED_TRACE(::testing::Message() << rows << " x " << vocab << " offset " << offset);
  constexpr double kSpread = 30, kScale = 0.25;
  const int64_t stride = vocab + padding;
  const auto logits = Guarded<T>::normal(rows * stride, 11, 3, offset);
  const auto labels = some_labels(rows, vocab);
  Guarded<F> losses(rows, offset);
  auto dlogits = Guarded<T>::normal(rows * stride, 12, 1, offset);
  const auto before = dlogits.values();
  cross_entropy(losses.view(), dlogits.view({rows, vocab}), logits.view({rows, vocab}),
                view_of(labels), kScale, padding == 0 ? 0 : stride);

  const double eps = (static_cast<double>(vocab) + kSpread + 4) * epsilon<F>();
  for (int64_t i = 0; i < rows; ++i) {
    double total = 0;
    for (int64_t j = 0; j < vocab; ++j) total += std::exp(logits[i * stride + j]);
    const bool counts = labels[i] >= 0;
    const double loss = counts ? std::log(total) - logits[i * stride + labels[i]] : 0;
    ASSERT_NEAR(losses[i], loss, eps * (1 + std::abs(loss)));
    for (int64_t j = 0; j < vocab; ++j) {
      const double p = std::exp(logits[i * stride + j]) / total;
      const double d = counts ? (p - (j == labels[i] ? 1 : 0)) * kScale : 0;
      ASSERT_NEAR(dlogits[i * stride + j], d,
                  eps * kScale * p + epsilon<T>() * std::abs(d) + eps * kScale * (j == labels[i]))
          << "row " << i << " column " << j;
    }
    for (int64_t j = vocab; j < stride; ++j) {
      ASSERT_EQ(dlogits[i * stride + j], before[i * stride + j]);
    }
  }
  ASSERT_TRUE(losses.guards_hold() && dlogits.guards_hold());
}

TEST(CrossEntropy, EqualsTheDefinitionAtEveryLengthRoundAVector) {
  for (const Isa isa : available_isas()) {
    SCOPED_TRACE(static_cast<int>(isa));
    const IsaLimit limit(isa);
    for (int64_t vocab = 1; vocab <= 35; ++vocab) {
      expect_cross_entropy<float>(5, vocab, vocab % 4, vocab % 3);
      expect_cross_entropy<bf16>(5, vocab, vocab % 4, vocab % 3);
    }
    expect_cross_entropy<float>(40, 1003, 0, 1);
    expect_cross_entropy<bf16>(40, 1003, 0, 1);
  }
  expect_cross_entropy<double>(5, 37, 3, 0);
}

TEST(CrossEntropy, GivesTheSlopeOfTheLoss) {
  constexpr int64_t kRows = 3, kVocab = 11;
  auto logits = Guarded<double>::normal(kRows * kVocab, 13);
  const std::vector<int32_t> labels{4, -1, 10};
  Guarded<double> losses(kRows), dlogits(kRows * kVocab);
  cross_entropy(losses.view(), dlogits.view({kRows, kVocab}), logits.view({kRows, kVocab}),
                view_of(labels), 0.5f);
  const auto loss = [&] {
    cross_entropy(losses.view(), {}, logits.view({kRows, kVocab}), view_of(labels), 0.5f);
    return 0.5 * sum(losses.view());
  };
  for (int64_t i = 0; i < kRows * kVocab; ++i) {
    constexpr double kStep = 1e-5;
    const double at = logits.data()[i];
    logits.data()[i] = at + kStep;
    const double above = loss();
    logits.data()[i] = at - kStep;
    const double below = loss();
    logits.data()[i] = at;
    EXPECT_NEAR(dlogits[i], (above - below) / (2 * kStep), 1e-9);
  }
}

TEST(CrossEntropy, MayWriteTheGradientOverTheLogits) {
  for (const Isa isa : available_isas()) {
    const IsaLimit limit(isa);
    auto logits = Guarded<bf16>::normal(4 * 50, 14);
    const auto labels = some_labels(4, 50);
    Guarded<float> losses(4), again(4);
    Guarded<bf16> dlogits(4 * 50);
    cross_entropy(losses.view(), dlogits.view({4, 50}), logits.view({4, 50}), view_of(labels), 1);
    cross_entropy(again.view(), logits.view({4, 50}), logits.view({4, 50}), view_of(labels), 1);
    EXPECT_EQ(losses.values(), again.values());
    EXPECT_EQ(dlogits.values(), logits.values());
  }
}

TEST(CrossEntropy, HoldsForLogitsFarFromZero) {
  for (const Isa isa : available_isas()) {
    const IsaLimit limit(isa);
    Guarded<float> logits(20), losses(1);
    for (int64_t j = 0; j < 20; ++j) logits.data()[j] = -3e4f;
    logits.data()[17] = 3e4f;
    const std::vector<int32_t> labels{17};
    cross_entropy(losses.view(), {}, logits.view({1, 20}), view_of(labels), 1);
    EXPECT_EQ(losses[0], 0);
  }
}

TEST(CrossEntropy, LetsANaNThrough) {
  for (const Isa isa : available_isas()) {
    const IsaLimit limit(isa);
    for (const int64_t place : {0, 7, 19, 36}) {
      auto logits = Guarded<float>::normal(37, 15);
      logits.data()[place] = NAN;
      Guarded<float> losses(1);
      const std::vector<int32_t> labels{3};
      cross_entropy(losses.view(), {}, logits.view({1, 37}), view_of(labels), 1);
      EXPECT_TRUE(std::isnan(losses[0])) << place;
    }
  }
}

TEST(CrossEntropy, DoesNotDependOnTheNumberOfThreads) {
  const auto logits = Guarded<bf16>::normal(64 * 1000, 16);
  const auto labels = some_labels(64, 1000);
  std::vector<double> results[2];
  for (const int count : {1, 2}) {
    const Threads threads(count);
    Guarded<float> losses(64);
    Guarded<bf16> dlogits(64 * 1000);
    cross_entropy(losses.view(), dlogits.view({64, 1000}), logits.view({64, 1000}), view_of(labels),
                  1);
    results[count - 1] = losses.values();
    const auto gradient = dlogits.values();
    results[count - 1].insert(results[count - 1].end(), gradient.begin(), gradient.end());
  }
  EXPECT_EQ(results[0], results[1]);
}

/// Losses and gradient of logits [rows, vocab] whose columns lie with several ranks: the steps of
/// each part, with the reductions in between. Each part's logits have rows of their own length.
template <class T>
struct InParts {
  using F = std::conditional_t<std::is_same_v<T, double>, double, float>;

  InParts(const Guarded<T>& logits, const std::vector<int32_t>& labels,
          const std::vector<int64_t>& widths, float scale)
      : rows(static_cast<int64_t>(labels.size())), vocab(logits.size() / rows) {
    Guarded<F> maxima(rows), sums(2 * rows), mine(rows), my_sums(2 * rows);
    for (int64_t i = 0; i < rows; ++i) maxima.data()[i] = -INFINITY;
    int64_t first = 0;
    std::vector<Guarded<T>> parts;
    std::vector<LogitsPart> views;
    for (const int64_t width : widths) {
      const int64_t stride = width + 3;
      parts.emplace_back(rows * stride, 1);
      for (int64_t i = 0; i < rows * width; ++i) {
        parts.back().data()[i / width * stride + i % width] =
            logits.data()[i / width * vocab + first + i % width];
      }
      views.push_back({{}, first, stride});
      first += width;
    }
    const auto view = [&](size_t p) {
      LogitsPart part = views[p];
      part.logits = parts[p].view({rows, widths[p]});
      return part;
    };
    for (size_t p = 0; p < widths.size(); ++p) {
      row_maxima(mine.view(), view(p));
      for (int64_t i = 0; i < rows; ++i) {
        maxima.data()[i] = std::max(maxima.data()[i], mine.data()[i]);
      }
    }
    for (size_t p = 0; p < widths.size(); ++p) {
      row_sums({maxima.view(), my_sums.view()}, view(p), view_of(labels));
      for (int64_t i = 0; i < 2 * rows; ++i) sums.data()[i] += my_sums.data()[i];
    }
    dlogits.assign(static_cast<size_t>(rows * vocab), 0);
    for (size_t p = 0; p < widths.size(); ++p) {
      Guarded<F> loss(rows);
      const LogitsPart part = view(p);
      cross_entropy_of_part(loss.view(), parts[p].view({rows, widths[p]}), part, view_of(labels),
                            {maxima.view(), sums.view()}, scale);
      for (size_t i = 0; p > 0 && i < losses.size(); ++i) {
        const double here = loss[static_cast<int64_t>(i)];
        EXPECT_TRUE(here == losses[i] || (std::isnan(here) && std::isnan(losses[i])));
      }
      losses = loss.values();
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < widths[p]; ++j) {
          dlogits[static_cast<size_t>(i * vocab + part.first_id + j)] =
              parts[p][i * part.row_stride + j];
        }
        for (int64_t j = widths[p]; j < part.row_stride; ++j) {
          EXPECT_EQ(parts[p][i * part.row_stride + j], 0) << "padding was written";
        }
      }
      EXPECT_TRUE(parts[p].guards_hold());
    }
  }

  int64_t rows, vocab;
  std::vector<double> losses, dlogits;
};

template <class T>
void expect_parts_to_equal_the_whole(int64_t vocab, const std::vector<int64_t>& widths) {
  using F = typename InParts<T>::F;
  constexpr int64_t kRows = 5;
  SCOPED_TRACE(::testing::Message() << vocab << " in " << widths.size() << " parts");
  const auto logits = Guarded<T>::normal(kRows * vocab, 17, 3);
  const auto labels = some_labels(kRows, vocab);
  Guarded<F> losses(kRows);
  Guarded<T> dlogits(kRows * vocab);
  cross_entropy(losses.view(), dlogits.view({kRows, vocab}), logits.view({kRows, vocab}),
                view_of(labels), 0.25f);
  const InParts<T> parts(logits, labels, widths, 0.25f);
  const double eps = (static_cast<double>(vocab) + 34) * epsilon<F>();
  for (int64_t i = 0; i < kRows; ++i) {
    EXPECT_NEAR(parts.losses[static_cast<size_t>(i)], losses[i], eps * (1 + std::abs(losses[i])));
  }
  for (int64_t i = 0; i < kRows * vocab; ++i) {
    ASSERT_NEAR(parts.dlogits[static_cast<size_t>(i)], dlogits[i],
                0.25 * eps + epsilon<T>() * std::abs(dlogits[i]));
  }
}

TEST(CrossEntropy, OfPartsOfTheVocabularyIsThatOfTheWhole) {
  for (const Isa isa : available_isas()) {
    const IsaLimit limit(isa);
    for (const auto& [vocab, widths] : {std::pair<int64_t, std::vector<int64_t>>{100, {50, 50}},
                                        {101, {34, 34, 33}},
                                        {5, {2, 2, 1, 0}},
                                        {3, {1, 1, 1, 0, 0}},
                                        {19, {19}},
                                        {1009, {505, 504}}}) {
      expect_parts_to_equal_the_whole<float>(vocab, widths);
      expect_parts_to_equal_the_whole<bf16>(vocab, widths);
    }
  }
  expect_parts_to_equal_the_whole<double>(101, {34, 34, 33});
  expect_parts_to_equal_the_whole<double>(5, {2, 2, 1, 0});
}

TEST(CrossEntropy, OfPartsDoesNotDependOnTheRowsThatAreTakenTogether) {
  constexpr int64_t kRows = 40, kVocab = 1003;
  const auto logits = Guarded<bf16>::normal(kRows * kVocab, 18, 3);
  const auto labels = some_labels(kRows, kVocab);
  const InParts<bf16> together(logits, labels, {502, 501}, 1);
  for (int64_t i = 0; i < kRows; ++i) {
    Guarded<bf16> row(kVocab);
    for (int64_t j = 0; j < kVocab; ++j) row.data()[j] = logits.data()[i * kVocab + j];
    const InParts<bf16> alone(row, {labels[i]}, {502, 501}, 1);
    EXPECT_EQ(alone.losses[0], together.losses[static_cast<size_t>(i)]);
    const auto first = together.dlogits.begin() + i * kVocab;
    EXPECT_EQ(alone.dlogits, std::vector<double>(first, first + kVocab));
  }
}

TEST(CrossEntropy, LetsANaNOfOnePartThroughInEveryPart) {
  for (const Isa isa : available_isas()) {
    const IsaLimit limit(isa);
    auto logits = Guarded<float>::normal(40, 19);
    logits.data()[33] = NAN;
    EXPECT_TRUE(std::isnan(InParts<float>(logits, {3}, {20, 20}, 1).losses[0]));
  }
}

TEST(CrossEntropy, RefusesALabelBeyondTheVocabulary) {
  Guarded<float> logits(10), losses(1);
  const std::vector<int32_t> labels{10};
  EXPECT_THROW(cross_entropy(losses.view(), {}, logits.view({1, 10}), view_of(labels), 1),
               core::InternalError);
}

TEST(Sum, AddsInDoublePrecision) {
  Guarded<float> x(3);
  x.data()[0] = 1e8f;
  x.data()[1] = 1;
  x.data()[2] = -1e8f;
  EXPECT_EQ(sum(x.view()), 1);
}

}  // namespace
}  // namespace tessera::kernels
