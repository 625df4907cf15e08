#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "data/corpus.h"

namespace tessera::data {
namespace {

constexpr int32_t kNotCounted = -1;

/// Windows over a range of a token stream. Windows share one token with the next: window w reads
/// tokens w·T … w·T + T of the range, the last as label only.
class TokenDataset : public Dataset {
 public:
  TokenDataset(std::shared_ptr<const TokenSource> tokens, int64_t first, int64_t count,
               const SplitOptions& options)
      : tokens_(std::move(tokens)), first_(first), count_(count), options_(options) {}

  int64_t num_windows() const override {
    return (count_ - 1 + options_.seq_len - 1) / options_.seq_len;
  }
  int64_t num_tokens() const override { return count_; }

  Batch read(const std::vector<int64_t>& windows) const override {
    Batch batch;
    batch.batch = static_cast<int64_t>(windows.size());
    batch.seq_len = options_.seq_len;
    batch.samples = windows;
    const size_t elements = windows.size() * static_cast<size_t>(options_.seq_len);
    batch.inputs.reserve(elements);
    batch.labels.reserve(elements);
    batch.doc_start.reserve(elements);
    std::vector<int32_t> ids;
    for (const int64_t window : windows) append_row(window, ids, batch);
    return batch;
  }

 private:
  void append_row(int64_t window, std::vector<int32_t>& ids, Batch& batch) const {
    CHECK(window >= 0 && window < num_windows(), "no such window");
    const int64_t seq_len = options_.seq_len;
    const int64_t start = window * seq_len;
    const int64_t present = std::min(seq_len + 1, count_ - start);
    ids.resize(static_cast<size_t>(present));
    tokens_->read(first_ + start, ids);
    ids.resize(static_cast<size_t>(seq_len + 1), options_.separator);

    int32_t doc_start = 0;
    for (int64_t t = 0; t < seq_len; ++t) {
      const int32_t input = ids[static_cast<size_t>(t)];
      const bool ends_document = options_.document_mask && input == options_.separator;
      const bool counts = t + 1 < present && !ends_document;
      batch.inputs.push_back(input);
      batch.labels.push_back(counts ? ids[static_cast<size_t>(t + 1)] : kNotCounted);
      batch.doc_start.push_back(doc_start);
      if (ends_document) doc_start = static_cast<int32_t>(t + 1);
    }
  }

  std::shared_ptr<const TokenSource> tokens_;
  int64_t first_;
  int64_t count_;
  SplitOptions options_;
};

}  // namespace

int64_t Batch::valid_tokens() const {
  return std::count_if(labels.begin(), labels.end(), [](int32_t label) { return label >= 0; });
}

std::unique_ptr<Dataset> make_dataset(std::shared_ptr<const TokenSource> tokens, int64_t first,
                                      int64_t count, const SplitOptions& options) {
  CHECK(options.seq_len > 0 && options.seq_len < INT32_MAX);
  CHECK(first >= 0 && count >= 0 && count <= tokens->size() - first);
  if (count < 2) {
    throw core::ConfigError(fmt::format(
        "The text has {} tokens: at least two are needed, one to read and one to predict. Give a "
        "longer text.",
        count));
  }
  return std::make_unique<TokenDataset>(std::move(tokens), first, count, options);
}

}  // namespace tessera::data
