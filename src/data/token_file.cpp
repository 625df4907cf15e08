#include "data/token_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/error.h"
#include "data/file.h"
#include "data/utf8.h"

namespace tessera::data {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

[[noreturn]] void refuse(const std::string& path, const std::string& why_and_what_to_do) {
  throw core::ConfigError(fmt::format("The token file \"{}\" {}", path, why_and_what_to_do));
}

/// The number of tokens that the header gives, checked against the file's size.
int64_t token_count(const std::string& path, const TokenFileHeader& header, int64_t file_bytes,
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

/// True for what a person would call text: characters, line ends and tabs, and nothing else.
bool looks_like_text(std::string_view bytes) {
  constexpr size_t kEnough = 4096;
  const std::string_view start = bytes.substr(0, kEnough);
  constexpr size_t kCutCharacter = 3;  // bytes of a character that the cut may have left
  if (utf8_valid_prefix(start) + kCutCharacter < start.size()) return false;
  return std::none_of(start.begin(), start.end(), [](char c) {
    return static_cast<uint8_t>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t' && c != '\f';
  });
}

/// The bytes of an id where `ids`, read as uint16, are rather pieces of wider ones: the upper
/// halves are next to nothing. 0 where they are not.
int wider_id_bytes(const std::vector<int32_t>& ids) {
  constexpr int32_t kSmall = 3;  // vocabularies up to 2^18
  for (const size_t pieces : {size_t{4}, size_t{2}}) {
    size_t large = 0;
    bool wider = ids.size() >= pieces;
    for (size_t i = 0; wider && i < ids.size(); ++i) {
      const size_t piece = i % pieces;
      if (piece == 0) large += ids[i] > kSmall;
      if (piece > 0) wider = ids[i] <= (piece == 1 ? kSmall : 0);
    }
    if (wider && large > ids.size() / pieces / 2) return static_cast<int>(2 * pieces);
  }
  return 0;
}

/// True for what llm.c's header leaves once its first words are damaged: zeros, or nearly so.
bool looks_like_llmc_header(std::string_view bytes) {
  constexpr size_t kWords = 16;  // bytes of the words that are used
  constexpr ptrdiff_t kDamaged = 8;
  const std::string_view rest =
      bytes.substr(std::min(kWords, bytes.size()), kTokenFileHeaderBytes - kWords);
  return std::count(rest.begin(), rest.end(), '\0') + kDamaged > std::ssize(rest) &&
         std::ssize(rest) > 2 * kDamaged;
}

/// What llm.c's files that hold no text to train on are; null for what is none of them. All
/// end in .bin, as token files do.
const char* other_llmc_file(std::string_view bytes) {
  int32_t magic = 0;
  if (bytes.size() < sizeof magic) return nullptr;
  std::memcpy(&magic, bytes.data(), sizeof magic);
  switch (magic) {
    case kEvalFileMagic:
      return "is a multiple-choice evaluation file (magic 20240522), not a stream of text to train "
             "on. Give token files with magic 20240520 or 20240801.";
    case kModelFileMagic:
      return "is a model file of llm.c (magic 20240326): weights, no tokens. Give it as "
             "training.load, and token files with magic 20240520 or 20240801 as data.path.";
    default:
      return nullptr;
  }
}

template <class T>
void widen(const char* from, std::span<int32_t> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    T id;
    std::memcpy(&id, from + i * sizeof id, sizeof id);
    if constexpr (sizeof(T) == 8) {
      out[i] = id < 0 || id > INT32_MAX ? -1 : static_cast<int32_t>(id);
    } else {
      out[i] = static_cast<int32_t>(id);
    }
  }
}

constexpr const char* kSayWhich =
    "Say what it is with data.format or --format: \"nanogpt\" (uint16 ids without a header), "
    "\"megatron\" or \"text\"; or make it again with `tessera data tokenize`.";

DataFormat settled(const std::string& path, DataFormat format) {
  CHECK(format != DataFormat::text);
  return format == DataFormat::automatic ? format_of(path) : format;
}

}  // namespace

TokenFile::TokenFile(const std::string& path, const TokenFileOptions& options)
    : path_(path),
      format_(settled(path, options.format)),
      file_(open_named(format_ == DataFormat::megatron ? megatron_paths(path).tokens : path,
                       "The token file")) {
  if (format_ == DataFormat::nanogpt) {
    open_nanogpt(options);
  } else if (format_ == DataFormat::megatron) {
    open_megatron(options);
  } else {
    open_llmc();
  }
}

void TokenFile::open_llmc() {
  const std::string_view bytes = file_.bytes();
  int32_t magic = 0;
  if (bytes.size() >= sizeof magic) std::memcpy(&magic, bytes.data(), sizeof magic);
  if (const char* other = other_llmc_file(bytes)) refuse(path_, other);
  if (magic != kTokenFileMagic16 && magic != kTokenFileMagic32) {
    refuse(path_,
           "does not start with the magic number 20240520 (uint16) or 20240801 (uint32). "
           "Make token files with `tessera data tokenize`.");
  }
  TokenFileHeader header{};
  if (bytes.size() < sizeof header) {
    refuse(path_,
           fmt::format("is truncated: its header alone takes 1024 bytes, but it has {}. Copy it "
                       "again, or make it again with `tessera data tokenize`.",
                       bytes.size()));
  }
  std::memcpy(header.data(), bytes.data(), sizeof header);
  const bool narrow = magic == kTokenFileMagic16;
  const uint32_t version = narrow ? kTokenFileVersion16 : kTokenFileVersion32;
  if (header[1] != version) {
    refuse(path_, fmt::format("has version {}, but with magic {} only version {} is known. Make it "
                              "again with `tessera data tokenize`.",
                              header[1], magic, version));
  }
  type_ = narrow ? IdType::u16 : IdType::u32;
  body_ = kTokenFileHeaderBytes;
  num_tokens_ = token_count(path_, header, static_cast<int64_t>(bytes.size()), token_bytes());
}

void TokenFile::open_nanogpt(const TokenFileOptions& options) {
  const std::string_view bytes = file_.bytes();
  if (has_llmc_magic(bytes)) refuse(path_, "has llm.c's header: it is not nanoGPT's.");
  if (has_megatron_magic(bytes)) refuse(path_, "is a Megatron index: it is not nanoGPT's.");
  if (const char* other = other_llmc_file(bytes)) refuse(path_, other);
  if (bytes.size() % 2 != 0) {
    refuse(path_, fmt::format("has {} bytes and no magic number: an odd number is no row of uint16 "
                              "ids, so it is not nanoGPT's. {}",
                              bytes.size(), kSayWhich));
  }
  num_tokens_ = static_cast<int64_t>(bytes.size() / 2);
  if (options.format == DataFormat::nanogpt || bytes.empty()) return;
  constexpr int64_t kLookedAt = 1 << 16;
  std::vector<int32_t> ids(static_cast<size_t>(std::min(num_tokens_, kLookedAt)));
  read(0, ids);
  const auto wrong = std::find_if(ids.begin(), ids.end(), [&](int32_t id) {
    return options.vocab_size > 0 && id >= options.vocab_size;
  });
  std::string doubt;
  if (looks_like_text(bytes)) {
    doubt = "it may be text";
  } else if (const int bytes_of_id = wider_id_bytes(ids); bytes_of_id > 0) {
    doubt = fmt::format(
        "it may have {}-bit ids, for {} numbers of 16 bits are tiny (from NumPy, save them with "
        ".astype(\"uint16\"))",
        8 * bytes_of_id, bytes_of_id == 4 ? "every other of its" : "three of four of its");
  } else if (looks_like_llmc_header(bytes)) {
    doubt = "it may be llm.c's, with a damaged header";
  } else if (wrong != ids.end()) {
    doubt = fmt::format("token {} would have id {}, but the tokenizer's vocabulary ends at {}",
                        wrong - ids.begin(), *wrong, options.vocab_size - 1);
  } else {
    return;
  }
  refuse(path_, fmt::format("has no magic number (20240520 or 20240801) and no .idx beside it, and "
                            "is not surely nanoGPT's: {}. {}",
                            doubt, kSayWhich));
}

void TokenFile::open_megatron(const TokenFileOptions& options) {
  const MegatronPaths paths = megatron_paths(path_);
  path_ = paths.tokens;
  const auto size = static_cast<int64_t>(file_.bytes().size());
  index_.emplace(paths.index, size);
  type_ = index_->type();
  if (options.separator >= 0) {
    separator_ = options.separator;
    added_separators_ = index_->add_separators([&](int64_t byte, int64_t length) {
      return raw_id(byte + (length - 1) * token_bytes()) != separator_;
    });
  }
  num_tokens_ = index_->num_tokens();
}

std::optional<int64_t> TokenFile::num_documents() const {
  if (!index_) return std::nullopt;
  return index_->num_documents();
}

int64_t TokenFile::unread_bytes() const {
  return index_ ? index_->unread_bytes() : 0;
}

void TokenFile::read(int64_t first, std::span<int32_t> out) const {
  const auto count = static_cast<int64_t>(out.size());
  CHECK(first >= 0 && first <= num_tokens_ && count <= num_tokens_ - first);
  if (!index_) return read_bytes(body_ + first * token_bytes(), out);
  while (!out.empty()) {
    const MegatronIndex::Sequence sequence = index_->sequence_of(first);
    const int64_t within = first - sequence.first;
    const auto here =
        static_cast<size_t>(std::min(sequence.length - within, static_cast<int64_t>(out.size())));
    read_bytes(sequence.byte + within * token_bytes(), out.first(here));
    out = out.subspan(here);
    first += static_cast<int64_t>(here);
    if (sequence.separator && !out.empty()) {
      out[0] = separator_;
      out = out.subspan(1);
      ++first;
    }
  }
}

void TokenFile::read_bytes(int64_t byte, std::span<int32_t> out) const {
  const char* from = file_.bytes().data() + byte;
  switch (type_) {
    case IdType::u8:
      return widen<uint8_t>(from, out);
    case IdType::i8:
      widen<uint8_t>(from, out);
      for (int32_t& id : out) id -= id < 0x80 ? 0 : 0x100;
      return;
    case IdType::i16:
      return widen<int16_t>(from, out);
    case IdType::u16:
      return widen<uint16_t>(from, out);
    case IdType::i32:
      return widen<int32_t>(from, out);
    case IdType::u32:
      return widen<uint32_t>(from, out);
    case IdType::i64:
      return widen<int64_t>(from, out);
  }
}

/// The byte in the file of the id at `place`, which no separator was added at.
int64_t TokenFile::byte_of(int64_t place) const {
  if (!index_) return body_ + place * token_bytes();
  const MegatronIndex::Sequence sequence = index_->sequence_of(place);
  return sequence.byte + (place - sequence.first) * token_bytes();
}

int64_t TokenFile::raw_id(int64_t byte) const {
  int64_t id = 0;
  std::memcpy(&id, file_.bytes().data() + byte, static_cast<size_t>(token_bytes()));
  switch (type_) {
    case IdType::i8:
      return static_cast<int8_t>(id);
    case IdType::i16:
      return static_cast<int16_t>(id);
    case IdType::i32:
      return static_cast<int32_t>(id);
    default:
      return id;
  }
}

void TokenFile::check_ids(std::span<const int32_t> tokens, int64_t first,
                          int64_t vocab_size) const {
  const auto wrong = std::find_if(tokens.begin(), tokens.end(), [vocab_size](int32_t id) {
    return int64_t{static_cast<uint32_t>(id)} >= vocab_size;
  });
  if (wrong == tokens.end()) return;
  const int64_t place = first + (wrong - tokens.begin());
  const int64_t byte = byte_of(place);
  refuse(path_,
         fmt::format("has id {} as token {} (byte {}), but the tokenizer's vocabulary ends at {}. "
                     "Give the tokenizer that made the file as data.tokenizer.",
                     raw_id(byte), place, byte, vocab_size - 1));
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
