#include "data/token_source.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"

namespace tessera::data {

void TokenSource::append(std::vector<int32_t> tokens) {
  if (tokens.empty()) return;
  const auto count = static_cast<int64_t>(tokens.size());
  parts_.push_back({size_, count, std::move(tokens), nullptr});
  size_ += count;
}

void TokenSource::append(std::shared_ptr<const TokenFile> file) {
  const int64_t count = file->num_tokens();
  if (count == 0) return;
  parts_.push_back({size_, count, {}, std::move(file)});
  size_ += count;
}

void TokenSource::read(int64_t first, std::span<int32_t> out) const {
  const auto wanted = static_cast<int64_t>(out.size());
  CHECK(first >= 0 && first <= size_ && wanted <= size_ - first);
  if (out.empty()) return;
  auto part = std::upper_bound(parts_.begin(), parts_.end(), first,
                               [](int64_t place, const Part& p) { return place < p.first; });
  for (--part; !out.empty(); ++part) {
    const int64_t offset = first - part->first;
    const auto count =
        static_cast<size_t>(std::min(part->size - offset, static_cast<int64_t>(out.size())));
    const std::span<int32_t> here = out.first(count);
    if (part->file) {
      part->file->read(offset, here);
      part->file->check_ids(here, offset, vocab_size_);
    } else {
      std::copy_n(part->tokens.begin() + offset, count, here.begin());
    }
    out = out.subspan(count);
    first += static_cast<int64_t>(count);
  }
}

double unigram_entropy(const TokenSource& tokens, int64_t first, int64_t count) {
  constexpr int64_t kAtOnce = 1 << 16;
  std::vector<int64_t> counts(static_cast<size_t>(tokens.vocab_size()));
  std::vector<int32_t> ids;
  for (int64_t done = 0; done < count; done += kAtOnce) {
    ids.resize(static_cast<size_t>(std::min(kAtOnce, count - done)));
    tokens.read(first + done, ids);
    for (const int32_t id : ids) ++counts[static_cast<size_t>(id)];
  }
  double entropy = 0;
  for (const int64_t times : counts) {
    if (times == 0) continue;
    const double p = static_cast<double>(times) / static_cast<double>(count);
    entropy -= p * std::log(p);
  }
  return entropy;
}

}  // namespace tessera::data
