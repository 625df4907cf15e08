#include "data/corpus.h"
#include "support.h"

namespace tessera::data {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using Ids = std::vector<int32_t>;

constexpr int32_t kEnd = 99;

std::unique_ptr<Dataset> dataset_of(const Ids& ids, int64_t seq_len, bool document_mask = true,
                                    int64_t first = 0, int64_t count = -1) {
  auto source = std::make_shared<TokenSource>(100);
  source->append(ids);
  if (count < 0) count = source->size() - first;
  return make_dataset(source, first, count, {seq_len, 0, document_mask, kEnd});
}

Ids counting(int32_t count) {
  Ids ids;
  for (int32_t i = 0; i < count; ++i) ids.push_back(i);
  return ids;
}

TEST(TokenDataset, CutsWindowsThatShareOneToken) {
  const auto dataset = dataset_of(counting(9), 4);
  ASSERT_EQ(dataset->num_windows(), 2);
  EXPECT_EQ(dataset->num_tokens(), 9);
  const Batch batch = dataset->read({0, 1});
  EXPECT_EQ(batch.batch, 2);
  EXPECT_EQ(batch.seq_len, 4);
  EXPECT_THAT(batch.inputs, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(batch.labels, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_THAT(batch.doc_start, Each(0));
  EXPECT_THAT(batch.samples, ElementsAre(0, 1));
  EXPECT_EQ(batch.valid_tokens(), 8);
}

TEST(TokenDataset, PadsTheLastWindowWithWhatDoesNotCount) {
  const auto dataset = dataset_of(counting(7), 4);
  ASSERT_EQ(dataset->num_windows(), 2);
  const Batch batch = dataset->read({1});
  EXPECT_THAT(batch.inputs, ElementsAre(4, 5, 6, kEnd));
  EXPECT_THAT(batch.labels, ElementsAre(5, 6, -1, -1));
  EXPECT_EQ(batch.valid_tokens(), 2);
}

TEST(TokenDataset, HasAsManyWindowsAsLabelsNeed) {
  for (int32_t tokens = 2; tokens < 40; ++tokens) {
    for (int64_t seq_len = 1; seq_len < 10; ++seq_len) {
      const auto dataset = dataset_of(counting(tokens), seq_len);
      int64_t labels = 0;
      for (int64_t w = 0; w < dataset->num_windows(); ++w) {
        const int64_t valid = dataset->read({w}).valid_tokens();
        EXPECT_GT(valid, 0);
        labels += valid;
      }
      EXPECT_EQ(labels, tokens - 1);  // every token but the first is predicted once
    }
  }
}

TEST(TokenDataset, MakesOneShortWindowOfAShortText) {
  const auto dataset = dataset_of({5, 6, 7}, 8);
  ASSERT_EQ(dataset->num_windows(), 1);
  EXPECT_THAT(dataset->read({0}).labels, ElementsAre(6, 7, -1, -1, -1, -1, -1, -1));
}

TEST(TokenDataset, KeepsDocumentsApart) {
  const Batch batch = dataset_of({1, 2, kEnd, 3, kEnd, kEnd, 4, 5, 6}, 8)->read({0});
  EXPECT_THAT(batch.inputs, ElementsAre(1, 2, kEnd, 3, kEnd, kEnd, 4, 5));
  EXPECT_THAT(batch.labels, ElementsAre(2, kEnd, -1, kEnd, -1, -1, 5, 6));
  EXPECT_THAT(batch.doc_start, ElementsAre(0, 0, 0, 3, 3, 5, 6, 6));
}

TEST(TokenDataset, ForgetsDocumentsThatEndInEarlierWindows) {
  const auto dataset = dataset_of({1, 2, kEnd, 3, 4, 5, kEnd, 6, 7}, 4);
  const Batch batch = dataset->read({1});
  EXPECT_THAT(batch.inputs, ElementsAre(4, 5, kEnd, 6));
  EXPECT_THAT(batch.doc_start, ElementsAre(0, 0, 0, 3));
}

TEST(TokenDataset, PadsWithDocumentsOfTheirOwn) {
  const Batch batch = dataset_of({1, 2, 3}, 6)->read({0});
  EXPECT_THAT(batch.inputs, ElementsAre(1, 2, 3, kEnd, kEnd, kEnd));
  EXPECT_THAT(batch.doc_start, ElementsAre(0, 0, 0, 0, 4, 5));
}

TEST(TokenDataset, CountsAllLabelsWithoutTheDocumentMask) {
  const Batch batch = dataset_of({1, kEnd, 2, 3, kEnd, 4}, 5, false)->read({0});
  EXPECT_THAT(batch.labels, ElementsAre(kEnd, 2, 3, kEnd, 4));
  EXPECT_THAT(batch.doc_start, Each(0));
  EXPECT_THAT(dataset_of({1, kEnd}, 3, false)->read({0}).labels, ElementsAre(kEnd, -1, -1));
}

TEST(TokenDataset, StaysInsideItsRangeOfTheStream) {
  const auto dataset = dataset_of(counting(20), 4, true, 5, 7);
  ASSERT_EQ(dataset->num_windows(), 2);
  const Batch batch = dataset->read({1, 0});
  EXPECT_THAT(batch.inputs, ElementsAre(9, 10, 11, kEnd, 5, 6, 7, 8));
  EXPECT_THAT(batch.labels, ElementsAre(10, 11, -1, -1, 6, 7, 8, 9));
  EXPECT_THAT(batch.samples, ElementsAre(1, 0));
}

TEST(TokenDataset, ReadsTheSameWindowsInAnyGrouping) {
  const auto dataset = dataset_of(counting(99), 7);
  const Batch together = dataset->read({3, 11, 0});
  Ids inputs;
  for (const int64_t window : {3, 11, 0}) {
    const Batch one = dataset->read({window});
    inputs.insert(inputs.end(), one.inputs.begin(), one.inputs.end());
  }
  EXPECT_EQ(together.inputs, inputs);
}

TEST(TokenDataset, RefusesWindowsThatAreNotThere) {
  const auto dataset = dataset_of(counting(9), 4);
  EXPECT_THROW(dataset->read({2}), core::InternalError);
  EXPECT_THROW(dataset->read({-1}), core::InternalError);
}

}  // namespace
}  // namespace tessera::data
