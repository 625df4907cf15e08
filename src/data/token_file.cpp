#include "data/token_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "core/error.h"
#include "data/file.h"

namespace tessera::data {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

using Header = std::array<uint32_t, 256>;
static_assert(sizeof(Header) == kTokenFileHeaderBytes);

constexpr int32_t kVersion16 = 1;
constexpr int32_t kVersion32 = 7;

int32_t magic_of(std::string_view bytes) {
  int32_t magic = 0;
  if (bytes.size() >= sizeof magic) std::memcpy(&magic, bytes.data(), sizeof magic);
  return magic;
}

[[noreturn]] void refuse(const std::string& path, const std::string& why_and_what_to_do) {
  throw core::ConfigError(fmt::format("The token file \"{}\" {}", path, why_and_what_to_do));
}

TokenWidth chosen_width(TokenWidth width, int64_t vocab_size) {
  if (width == TokenWidth::u16 && vocab_size > kMaxVocab16) {
    throw core::ConfigError(fmt::format(
        "A vocabulary of {} tokens does not fit into uint16, which ends at id 65535: larger ids "
        "would be cut to others that look right. Write uint32.",
        vocab_size));
  }
  if (width != TokenWidth::automatic) return width;
  return vocab_size <= kMaxVocab16 ? TokenWidth::u16 : TokenWidth::u32;
}

/// The number of tokens that the header gives, checked against the file's size.
int64_t token_count(const std::string& path, const Header& header, int64_t file_bytes,
                    int64_t token_bytes) {
  const uint64_t claimed = (uint64_t{header[3]} << 32) | header[2];
  const int64_t body = file_bytes - kTokenFileHeaderBytes;
  const int64_t present = body / token_bytes;
  const bool whole = body % token_bytes == 0;
  if (whole && static_cast<uint64_t>(present) == claimed) return present;
  const bool overflowed =
      header[3] == 0 && present > INT32_MAX && static_cast<uint32_t>(present) == header[2];
  if (whole && overflowed) return present;
  if (claimed > uint64_t{1} << 56) {
    refuse(path,
           fmt::format("claims {} tokens, which no file holds: its header is damaged. Make it "
                       "again with `tessera data tokenize`.",
                       claimed));
  }
  const auto expected = kTokenFileHeaderBytes + static_cast<int64_t>(claimed) * token_bytes;
  refuse(path, fmt::format(
                   "{}: its header says {} tokens of {} bytes, so {} bytes in all, but it has {}. "
                   "Copy it again, or make it again with `tessera data tokenize`.",
                   file_bytes < expected ? "is truncated" : "has bytes after its last token",
                   claimed, token_bytes, expected, file_bytes));
}

}  // namespace

TokenFileWriter::TokenFileWriter(const std::string& path, int64_t vocab_size, TokenWidth width)
    : path_(path),
      vocab_size_(vocab_size),
      width_(chosen_width(width, vocab_size)),
      file_(create_named(path)) {
  write_header(true);
}

void TokenFileWriter::write_header(bool first) {
  Header header{};
  const bool narrow = width_ == TokenWidth::u16;
  header[0] = static_cast<uint32_t>(narrow ? kTokenFileMagic16 : kTokenFileMagic32);
  header[1] = static_cast<uint32_t>(narrow ? kVersion16 : kVersion32);
  header[2] = static_cast<uint32_t>(num_tokens_);
  header[3] = static_cast<uint32_t>(num_tokens_ >> 32);
  const auto bytes = std::as_bytes(std::span(header));
  if (first) {
    file_.write(bytes);
  } else {
    file_.overwrite(0, bytes);
  }
}

void TokenFileWriter::append(std::span<const int32_t> tokens) {
  const auto width = static_cast<size_t>(token_bytes());
  encoded_.resize(tokens.size() * width);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int32_t id = tokens[i];
    if (id < 0 || id >= vocab_size_) {
      throw core::ConfigError(
          fmt::format("Token {} at place {} does not belong to the vocabulary of {} that \"{}\" "
                      "is written for. Use the tokenizer that the tokens came from.",
                      id, num_tokens_ + static_cast<int64_t>(i), vocab_size_, path_));
    }
    // Little-endian: the low bytes come first.
    std::memcpy(encoded_.data() + i * width, &id, width);
  }
  file_.write(encoded_);
  num_tokens_ += static_cast<int64_t>(tokens.size());
}

void TokenFileWriter::finish() {
  write_header(false);
  file_.commit();
}

bool looks_like_token_file(std::string_view bytes) {
  const int32_t magic = magic_of(bytes);
  return magic == kTokenFileMagic16 || magic == kTokenFileMagic32 || magic == kEvalFileMagic;
}

TokenFile::TokenFile(const std::string& path)
    : path_(path), file_(open_named(path, "The token file")) {
  const std::string_view bytes = file_.bytes();
  const int32_t magic = magic_of(bytes);
  if (magic == kEvalFileMagic) {
    refuse(path,
           "is a multiple-choice evaluation file (magic 20240522), not a stream of text to "
           "train on. Give token files with magic 20240520 or 20240801.");
  }
  if (magic != kTokenFileMagic16 && magic != kTokenFileMagic32) {
    refuse(path,
           "does not start with the magic number 20240520 (uint16) or 20240801 (uint32). "
           "Make token files with `tessera data tokenize`.");
  }
  if (bytes.size() < sizeof(Header)) {
    refuse(path, fmt::format("is truncated: its header alone takes 1024 bytes, but it has {}. Copy "
                             "it again, or make it again with `tessera data tokenize`.",
                             bytes.size()));
  }
  Header header{};
  std::memcpy(header.data(), bytes.data(), sizeof header);
  const bool narrow = magic == kTokenFileMagic16;
  const int32_t version = narrow ? kVersion16 : kVersion32;
  if (header[1] != static_cast<uint32_t>(version)) {
    refuse(path, fmt::format("has version {}, but with magic {} only version {} is known. Make it "
                             "again with `tessera data tokenize`.",
                             header[1], magic, version));
  }
  token_bytes_ = narrow ? 2 : 4;
  num_tokens_ = token_count(path, header, static_cast<int64_t>(bytes.size()), token_bytes_);
}

void TokenFile::read(int64_t first, std::span<int32_t> out) const {
  const auto count = static_cast<int64_t>(out.size());
  CHECK(first >= 0 && first <= num_tokens_ && count <= num_tokens_ - first);
  const char* from = file_.bytes().data() + kTokenFileHeaderBytes + first * token_bytes_;
  if (token_bytes_ == 4) {
    if (count > 0) std::memcpy(out.data(), from, out.size_bytes());
    return;
  }
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t id = 0;
    std::memcpy(&id, from + i * sizeof id, sizeof id);
    out[i] = id;
  }
}

void TokenFile::check_ids(std::span<const int32_t> tokens, int64_t first,
                          int64_t vocab_size) const {
  const auto wrong = std::find_if(tokens.begin(), tokens.end(), [vocab_size](int32_t id) {
    return int64_t{static_cast<uint32_t>(id)} >= vocab_size;
  });
  if (wrong == tokens.end()) return;
  const int64_t place = first + (wrong - tokens.begin());
  refuse(path_,
         fmt::format("has id {} as token {} (byte {}), but the tokenizer's vocabulary ends at {}. "
                     "Give the tokenizer that made the file as data.tokenizer.",
                     static_cast<uint32_t>(*wrong), place,
                     kTokenFileHeaderBytes + place * token_bytes_, vocab_size - 1));
}

void TokenFile::check_ids(int64_t vocab_size) const {
  std::vector<int32_t> tokens;
  constexpr int64_t kAtOnce = 1 << 16;
  for (int64_t first = 0; first < num_tokens_; first += kAtOnce) {
    tokens.resize(static_cast<size_t>(std::min(kAtOnce, num_tokens_ - first)));
    read(first, tokens);
    check_ids(tokens, first, vocab_size);
  }
}

}  // namespace tessera::data
