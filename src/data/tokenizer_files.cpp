// Tokenizers as files and folders.

#include <fmt/format.h>

#include <filesystem>

#include "core/error.h"
#include "data/file.h"
#include "data/tokenizer.h"

namespace tessera::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFileName = "tokenizer.json";
constexpr size_t kMaxBytes = size_t{1} << 28;  // the largest in use have 35 MB

core::MappedFile open_small(const std::string& path) {
  core::MappedFile file = open_named(path, "The tokenizer (\"bytes\", a file or a folder)");
  if (file.bytes().size() > kMaxBytes) {
    throw core::ConfigError(fmt::format(
        "The tokenizer \"{}\" has {} bytes; a tokenizer's file has at most {}. Is it another file?",
        path, file.bytes().size(), kMaxBytes));
  }
  return file;
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

/// GPT-2's pair, under its names or the older ones; nullptr where the folder has neither.
std::shared_ptr<const Tokenizer> load_vocab_and_merges(const fs::path& folder) {
  struct Names {
    const char* vocab;
    const char* merges;
  };
  for (const Names& names : {Names{"vocab.json", "merges.txt"}, {"encoder.json", "vocab.bpe"}}) {
    const fs::path vocab = folder / names.vocab;
    const fs::path merges = folder / names.merges;
    if (!is_there(vocab) && !is_there(merges)) continue;
    const core::MappedFile vocab_file = open_small(vocab.string());
    const core::MappedFile merges_file = open_small(merges.string());
    const fs::path config = folder / "tokenizer_config.json";
    const std::string settings =
        is_there(config) ? std::string(open_small(config.string()).bytes()) : std::string();
    return parse_vocab_and_merges(vocab_file.bytes(), merges_file.bytes(), settings,
                                  folder.string());
  }
  return nullptr;
}

}  // namespace

std::shared_ptr<const Tokenizer> load_tokenizer(const std::string& name) {
  if (name == "bytes") return Tokenizer::bytes();
  fs::path path(name);
  std::error_code error;
  if (fs::is_directory(path, error)) {
    path /= kFileName;
    if (!is_there(path)) {
      if (auto tokenizer = load_vocab_and_merges(name)) return tokenizer;
      throw core::ConfigError(fmt::format(
          "The tokenizer folder \"{}\" has no {} in it, nor vocab.json and merges.txt. Copy "
          "them there if it is a model's, or name another: `tessera data train-tokenizer` makes "
          "one, and \"bytes\" needs none.",
          name, kFileName));
    }
  }
  return parse_tokenizer_json(open_small(path.string()).bytes(), path.string());
}

std::string tokenizer_file(const std::string& path) {
  return path.ends_with(".json") ? path : (std::filesystem::path(path) / kFileName).string();
}

std::string save_tokenizer(const Tokenizer& tokenizer, const std::string& path) {
  std::string file_path = tokenizer_file(path);
  const auto folder = std::filesystem::path(file_path).parent_path();
  std::error_code error;
  if (!folder.empty()) std::filesystem::create_directories(folder, error);
  if (error) {
    throw core::ConfigError(
        fmt::format("The folder \"{}\" cannot be made: {}. Choose another, or make it writable.",
                    folder.string(), error.message()));
  }
  core::AtomicFile file = create_named(file_path);
  const std::string text = tokenizer_json(tokenizer);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
  return file_path;
}

}  // namespace tessera::data
