#include "data/megatron_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "data/file.h"
#include "data/token_format.h"

namespace tessera::data {
namespace {

constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
constexpr int64_t kHeaderBytes = 9 + 8 + 1 + 8 + 8;
constexpr int64_t kBytesOfSequence = 4 + 8;

template <class T>
T value_at(std::string_view bytes, int64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

int64_t bytes_of(IdType type) {
  switch (type) {
    case IdType::u8:
    case IdType::i8:
      return 1;
    case IdType::i16:
    case IdType::u16:
      return 2;
    case IdType::i32:
    case IdType::u32:
      return 4;
    case IdType::i64:
      return 8;
  }
  CHECK(false);
}

bool has_megatron_magic(std::string_view bytes) {
  return bytes.starts_with(kMagic);
}

MegatronPaths megatron_paths(const std::string& path) {
  std::string stem = path;
  if (stem.ends_with(".idx") || stem.ends_with(".bin")) stem.resize(stem.size() - 4);
  return {stem + ".bin", stem + ".idx"};
}

MegatronIndex::MegatronIndex(const std::string& path, int64_t token_bytes)
    : path_(path), file_(open_named(path, "Megatron's index file")) {
  read_header();
  check_sequences(token_bytes);
  check_bounds();
}

void MegatronIndex::refuse(const std::string& why) const {
  throw core::ConfigError(fmt::format(
      "The Megatron index file \"{}\" {} Copy it again together with its .bin, or make both again.",
      path_, why));
}

void MegatronIndex::read_header() {
  const std::string_view bytes = file_.bytes();
  const auto size = static_cast<int64_t>(bytes.size());
  if (!has_megatron_magic(bytes)) refuse("does not start with MMIDIDX: it is another file.");
  if (size < kHeaderBytes) {
    refuse(
        fmt::format("is truncated: its header takes {} bytes, but it has {}.", kHeaderBytes, size));
  }
  const auto version = value_at<uint64_t>(bytes, 9);
  if (version != 1) refuse(fmt::format("has version {}; only version 1 is known.", version));
  const auto code = value_at<uint8_t>(bytes, 17);
  switch (code) {
    case 1:
      type_ = IdType::u8;
      break;
    case 2:
      type_ = IdType::i8;
      break;
    case 3:
      type_ = IdType::i16;
      break;
    case 4:
      type_ = IdType::i32;
      break;
    case 5:
      type_ = IdType::i64;
      break;
    case 8:
      type_ = IdType::u16;
      break;
    case 6:
    case 7:
      refuse(fmt::format("has type code {}: floating-point numbers, no token ids.", code));
    default:
      refuse(
          fmt::format("has type code {} in byte 17; known are 1 to 5 and 8, of integers.", code));
  }
  const auto sequences = value_at<uint64_t>(bytes, 18);
  const auto bounds = value_at<uint64_t>(bytes, 26);
  const auto room = static_cast<uint64_t>(size - kHeaderBytes);
  const bool fits = sequences <= room / kBytesOfSequence && bounds <= room / 8;
  const uint64_t needed = fits ? sequences * kBytesOfSequence + bounds * 8 : 0;
  // Multimodal data has one byte more a sequence.
  if (!fits || (room != needed && room != needed + sequences)) {
    refuse(
        fmt::format("has {} bytes, which is not what its header says: {} sequences and {} "
                    "document bounds.",
                    size, sequences, bounds));
  }
  num_sequences_ = static_cast<int64_t>(sequences);
  num_bounds_ = static_cast<int64_t>(bounds);
}

void MegatronIndex::check_sequences(int64_t token_bytes) {
  starts_.reserve(static_cast<size_t>(num_sequences_) + 1);
  starts_.push_back(0);
  const int64_t width = bytes_of(type_);
  for (int64_t s = 0; s < num_sequences_; ++s) {
    const int64_t from = byte(s);
    const int64_t ids = length(s);
    if (ids < 0 || from < 0 || from > token_bytes || ids > (token_bytes - from) / width) {
      refuse(
          fmt::format("says that sequence {} is {} ids of {} bytes from byte {} on, but its .bin "
                      "has {} bytes.",
                      s, ids, width, from, token_bytes));
    }
    if (from % width != 0) {
      refuse(
          fmt::format("says that sequence {} starts at byte {} of its .bin, in the middle of an id "
                      "of {} bytes.",
                      s, from, width));
    }
    starts_.push_back(starts_.back() + ids);
  }
  // Sequences that overlap could add up to more than there is.
  if (starts_.back() > token_bytes / width) {
    refuse(fmt::format("has sequences of {} ids in all, but its .bin has room for {}.",
                       starts_.back(), token_bytes / width));
  }
  unread_bytes_ = token_bytes - starts_.back() * width;
  check_overlaps();
}

void MegatronIndex::check_overlaps() const {
  const int64_t width = bytes_of(type_);
  const auto overlaps = [&](int64_t earlier, int64_t later) {
    return byte(later) < byte(earlier) + length(earlier) * width;
  };
  // Its writers append: sequences lie in their order.
  bool in_order = true;
  for (int64_t s = 1; in_order && s < num_sequences_; ++s) in_order = !overlaps(s - 1, s);
  if (in_order) return;
  std::vector<int64_t> order;
  for (int64_t s = 0; s < num_sequences_; ++s) {
    if (length(s) > 0) order.push_back(s);
  }
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return byte(a) < byte(b); });
  for (size_t i = 1; i < order.size(); ++i) {
    if (!overlaps(order[i - 1], order[i])) continue;
    refuse(fmt::format("says that sequences {} and {} share byte {} of its .bin.",
                       std::min(order[i - 1], order[i]), std::max(order[i - 1], order[i]),
                       byte(order[i])));
  }
}

void MegatronIndex::check_bounds() {
  for (int64_t d = 0; d < num_bounds_; ++d) {
    const int64_t least = d == 0 ? 0 : bound(d - 1);
    const int64_t most = d == 0 ? 0 : num_sequences_;
    if (bound(d) < least || bound(d) > most) {
      refuse(fmt::format("has document bound {} = {}, but it must be from {} to {}.", d, bound(d),
                         least, most));
    }
    num_documents_ += d > 0 && bound(d) > least;
  }
  if (num_sequences_ > 0 && (num_bounds_ == 0 || bound(num_bounds_ - 1) != num_sequences_)) {
    refuse(fmt::format("has {} sequences, but its documents end with sequence {}.", num_sequences_,
                       num_bounds_ == 0 ? 0 : bound(num_bounds_ - 1)));
  }
}

int64_t MegatronIndex::length(int64_t sequence) const {
  return value_at<int32_t>(file_.bytes(), kHeaderBytes + sequence * 4);
}
int64_t MegatronIndex::byte(int64_t sequence) const {
  return value_at<int64_t>(file_.bytes(), kHeaderBytes + num_sequences_ * 4 + sequence * 8);
}
int64_t MegatronIndex::bound(int64_t document) const {
  return value_at<int64_t>(file_.bytes(),
                           kHeaderBytes + num_sequences_ * kBytesOfSequence + document * 8);
}

MegatronIndex::Sequence MegatronIndex::sequence_of(int64_t place) const {
  CHECK(place >= 0 && place < num_tokens());
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), place);
  const auto s = static_cast<int64_t>(after - starts_.begin()) - 1;
  const int64_t first = starts_[static_cast<size_t>(s)];
  return {first, length(s), byte(s), starts_[static_cast<size_t>(s + 1)] - first > length(s)};
}

}  // namespace tessera::data
