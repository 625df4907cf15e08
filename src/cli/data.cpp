// tessera data: text to tokenizers and token files, and what is in either.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/verbs.h"
#include "core/error.h"
#include "data/bpe_trainer.h"
#include "data/corpus.h"

namespace tessera::cli {
namespace {

using Json = nlohmann::ordered_json;

struct DataOptions {
  std::vector<std::string> inputs;
  std::string tokenizer = "bytes";
  std::string output;
  int32_t vocab_size = 4096;
  int64_t preview_tokens = 32;
  data::DataFormat format = data::DataFormat::automatic;
  data::ShardOptions shards;
  data::EncodeOptions encoding;
  bool no_added_tokens = false;
  bool overwrite = false;
  bool json = false;
};

void print_json(const Json& report) {
  // Samples of text may be cut inside a character: replaced, for JSON is UTF-8.
  fmt::print("{}\n", report.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print_warnings(const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings) fmt::print(stderr, "warning: {}\n", warning);
}

void refuse_existing(const std::string& path, bool overwrite) {
  if (overwrite || !std::filesystem::exists(path)) return;
  throw core::ConfigError(fmt::format(
      "\"{}\" is there already. Choose another --output, or replace it with --overwrite.", path));
}

double bytes_per_token(const data::EncodeCounts& counts) {
  return counts.tokens == 0
             ? 0.0
             : static_cast<double>(counts.bytes) / static_cast<double>(counts.tokens);
}

void train_tokenizer(const DataOptions& options) {
  const std::string file = data::tokenizer_file(options.output);
  refuse_existing(file, options.overwrite);
  data::BpeTrainer trainer({options.vocab_size});
  int64_t documents = 0;
  const bool any_name = options.format == data::DataFormat::text;
  for (const std::string& path : options.inputs) {
    const auto add = [&](std::string_view text) { trainer.add(text); };
    documents += data::for_each_document(path, add, any_name).documents;
  }
  const auto tokenizer = trainer.train();

  data::Encoder encoder(*tokenizer);
  std::vector<int32_t> ids;
  for (const std::string& path : options.inputs) {
    const auto encode = [&](std::string_view text) {
      ids.clear();
      encoder.encode(text, ids);
    };
    data::for_each_document(path, encode, any_name);
  }
  std::vector<std::string> warnings;
  if (tokenizer->vocab_size() < options.vocab_size) {
    warnings.push_back(
        fmt::format("the text has no more pairs of tokens that repeat: the vocabulary has {} "
                    "tokens, not {}. Give "
                    "more text for more.",
                    tokenizer->vocab_size(), options.vocab_size));
  }
  data::save_tokenizer(*tokenizer, options.output);
  print_warnings(warnings);
  const size_t merges = tokenizer->vocabulary().merges.size();
  if (options.json) {
    return print_json({{"tokenizer", file},
                       {"vocab_size", tokenizer->vocab_size()},
                       {"merges", merges},
                       {"documents", documents},
                       {"text_bytes", encoder.counts().bytes},
                       {"tokens", encoder.counts().tokens},
                       {"bytes_per_token", bytes_per_token(encoder.counts())},
                       {"warnings", warnings}});
  }
  fmt::print("{}: vocabulary {} ({} merges) from {} documents, {} bytes; {:.2f} bytes a token\n",
             file, tokenizer->vocab_size(), merges, documents, encoder.counts().bytes,
             bytes_per_token(encoder.counts()));
}

/// An output that is an input would take its place.
void refuse_own_input(const std::string& output, const std::vector<std::string>& inputs) {
  std::error_code ignored;
  for (const std::string& input : inputs) {
    if (!std::filesystem::equivalent(input, output, ignored)) continue;
    throw core::ConfigError(output + " is what is read; choose another --output");
  }
}

/// What an earlier run wrote under the same name and this one did not: read together they would
/// be the same text twice.
void remove_stale_shards(const std::string& output, const std::vector<std::string>& written) {
  const auto stale = [&](const std::string& path) {
    return std::find(written.begin(), written.end(), path) == written.end();
  };
  std::error_code ignored;
  if (stale(output)) std::filesystem::remove(output, ignored);
  for (int64_t number = 1;; ++number) {
    const std::string path = data::shard_path(output, number);
    if (stale(path) && !std::filesystem::remove(path, ignored)) return;
  }
}

void tokenize(const DataOptions& options) {
  refuse_own_input(options.output, options.inputs);
  refuse_own_input(data::shard_path(options.output, 1), options.inputs);
  refuse_existing(options.output, options.overwrite);
  refuse_existing(data::shard_path(options.output, 1), options.overwrite);
  const data::DataSource source{options.inputs, data::load_tokenizer(options.tokenizer),
                                options.format, options.encoding};
  const auto start = std::chrono::steady_clock::now();
  const data::WrittenTokens written =
      data::write_token_files(source, options.output, options.shards);
  if (options.overwrite) remove_stale_shards(options.output, written.files);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const double megabytes_per_s =
      static_cast<double>(written.corpus.encoded.bytes) / 1e6 / std::max(took.count(), 1e-9);
  const data::Corpus& corpus = written.corpus;
  print_warnings(corpus.warnings);
  if (options.json) {
    return print_json({{"token_file", written.files.front()},
                       {"token_files", written.files},
                       {"token_bytes", written.token_bytes},
                       {"tokens", written.tokens},
                       {"vocab_size", source.tokenizer->vocab_size()},
                       {"documents", corpus.documents.documents},
                       {"empty_documents", corpus.documents.empty},
                       {"text_bytes", corpus.encoded.bytes},
                       {"invalid_bytes", corpus.encoded.invalid_bytes},
                       {"special_texts", corpus.encoded.special_texts},
                       {"unknown_bytes", corpus.encoded.unknown_bytes},
                       {"bytes_per_token", bytes_per_token(corpus.encoded)},
                       {"megabytes_per_s", megabytes_per_s},
                       {"warnings", corpus.warnings}});
  }
  const size_t files = written.files.size();
  fmt::print(
      "{}{}: {} tokens of {} bytes from {} documents, {} bytes; {:.2f} bytes a token, {:.1f} "
      "MB/s\n",
      written.files.front(), files == 1 ? "" : fmt::format(" and {} more", files - 1),
      written.tokens, written.token_bytes, corpus.documents.documents, corpus.encoded.bytes,
      bytes_per_token(corpus.encoded), megabytes_per_s);
}

/// The documents of one input, "-" being the standard input.
void for_each_input(const std::string& path, const DataOptions& options,
                    const std::function<void(std::string_view)>& visit) {
  if (path != "-") {
    data::for_each_document(path, visit, options.format == data::DataFormat::text);
    return;
  }
  std::string text;
  char piece[1 << 14];
  while (const size_t bytes = std::fread(piece, 1, sizeof piece, stdin)) text.append(piece, bytes);
  visit(text);
}

void encode(const DataOptions& options) {
  const auto tokenizer = data::load_tokenizer(options.tokenizer);
  const data::Vocabulary& vocabulary = tokenizer->vocabulary();
  data::Encoder encoder(*tokenizer, options.encoding);
  Json documents = Json::array();
  std::vector<int32_t> ids;
  const auto visit = [&](std::string_view text) {
    ids.clear();
    if (!options.no_added_tokens) ids = vocabulary.prefix;
    encoder.encode(text, ids);
    if (!options.no_added_tokens) {
      ids.insert(ids.end(), vocabulary.suffix.begin(), vocabulary.suffix.end());
    }
    if (options.json) return documents.push_back(ids);
    fmt::print("{}\n", fmt::join(ids, " "));
  };
  for (const std::string& path : options.inputs) for_each_input(path, options, visit);
  const data::EncodeCounts& counts = encoder.counts();
  if (!options.json) return;
  fmt::print("{}\n", Json{{"documents", documents},
                          {"text_bytes", counts.bytes},
                          {"invalid_bytes", counts.invalid_bytes},
                          {"special_texts", counts.special_texts},
                          {"unknown_bytes", counts.unknown_bytes}}
                         .dump());
}

bool is_tokenizer(const std::string& path) {
  return path == "bytes" || path.ends_with(".json") || std::filesystem::is_directory(path);
}

Json show_tokenizer(const std::string& path) {
  const auto tokenizer = data::load_tokenizer(path);
  constexpr size_t kShown = 8;
  const std::vector<data::Merge>& merges = tokenizer->vocabulary().merges;
  Json first_merges = Json::array();
  for (size_t rank = 0; rank < std::min(kShown, merges.size()); ++rank) {
    first_merges.push_back(tokenizer->display(merges[rank].result));
  }
  const data::Vocabulary& vocabulary = tokenizer->vocabulary();
  const int32_t separator = vocabulary.separator;
  const bool has_one = separator != data::kNoToken;
  return {{"path", path},
          {"kind", "tokenizer"},
          {"vocab_size", tokenizer->vocab_size()},
          {"merges", merges.size()},
          {"added_tokens", vocabulary.added.size()},
          {"separator_id", has_one ? Json(separator) : Json()},
          {"separator", has_one ? Json(tokenizer->display(separator)) : Json()},
          {"prefix_ids", vocabulary.prefix},
          {"suffix_ids", vocabulary.suffix},
          {"first_merges", first_merges}};
}

/// Reads all tokens once: how many, of which documents, and how much a frequency table knows.
Json show_data(const std::string& path, const DataOptions& options,
               const std::shared_ptr<const data::Tokenizer>& tokenizer) {
  const data::Corpus corpus =
      data::load_corpus({{path}, tokenizer, options.format, options.encoding});
  const data::TokenSource& tokens = *corpus.tokens;
  const bool is_text = corpus.documents.documents > 0;
  std::vector<int32_t> ids;
  int64_t separators = 0;
  constexpr int64_t kAtOnce = 1 << 16;
  for (int64_t first = 0; first < tokens.size(); first += kAtOnce) {
    ids.resize(static_cast<size_t>(std::min(kAtOnce, tokens.size() - first)));
    tokens.read(first, ids);
    separators += std::count(ids.begin(), ids.end(), tokenizer->separator());
  }
  ids.resize(static_cast<size_t>(std::clamp<int64_t>(options.preview_tokens, 0, tokens.size())));
  tokens.read(0, ids);
  Json beginning = Json::array();
  for (const int32_t id : ids) beginning.push_back(tokenizer->display(id));
  print_warnings(corpus.warnings);
  Json report{{"path", path},
              {"kind", !is_text                                             ? "tokens"
                       : data::text_format(path) == data::TextFormat::plain ? "text"
                                                                            : "json-lines"},
              {"tokens", tokens.size()},
              {"documents", is_text ? corpus.documents.documents : separators},
              {"vocab_size", tokenizer->vocab_size()},
              {"unigram_entropy_nats_per_token", data::unigram_entropy(tokens, 0, tokens.size())},
              {"beginning", beginning},
              {"warnings", corpus.warnings}};
  if (is_text) report["invalid_bytes"] = corpus.encoded.invalid_bytes;
  return report;
}

std::string as_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string joined;
  for (const Json& part : value) joined += (joined.empty() ? "" : "|") + as_text(part);
  return joined;
}

void show(const DataOptions& options) {
  Json reports = Json::array();
  const auto tokenizer = data::load_tokenizer(options.tokenizer);
  for (const std::string& path : options.inputs) {
    reports.push_back(is_tokenizer(path) ? show_tokenizer(path)
                                         : show_data(path, options, tokenizer));
  }
  if (options.json) return print_json({{"files", reports}});
  for (const Json& report : reports) {
    for (const auto& [key, value] : report.items()) {
      if (key == "warnings") continue;
      fmt::print("{:<32}{}\n", key, as_text(value));
    }
  }
}

CLI::App* add_command(CLI::App& verb, const std::shared_ptr<DataOptions>& options, int& status,
                      const char* name, const char* description, void (*run)(const DataOptions&)) {
  CLI::App* command = verb.add_subcommand(name, description);
  command->add_flag("--json", options->json, "report as one JSON object on stdout");
  command->callback([options, run, &status] {
    run(*options);
    status = kDone;
  });
  return command;
}

/// An option that takes one of a few words.
template <class Value>
void add_choice(CLI::App& command, const std::string& names, Value& target,
                const std::map<std::string, Value>& words, const std::string& about) {
  std::vector<std::string> known;
  for (const auto& [word, value] : words) known.push_back(word);
  command
      .add_option_function<std::string>(
          names, [&target, words](const std::string& word) { target = words.at(word); }, about)
      ->check(CLI::IsMember(known));
}

void add_encoding(CLI::App& command, data::EncodeOptions& encoding) {
  add_choice<bool>(command, "--special-tokens,--special_tokens", encoding.parse_special,
                   {{"parse", true}, {"text", false}},
                   "their text in documents: these tokens, as Hugging Face has it, or plain text");
  add_choice<bool>(command, "--invalid-utf8,--invalid_utf8", encoding.keep_invalid_bytes,
                   {{"replace", false}, {"keep", true}},
                   "bytes that are no UTF-8: U+FFFD instead, or tokens of their own");
}

void add_input_and_output(CLI::App& command, DataOptions& options, const char* output) {
  command
      .add_option("input,--input", options.inputs,
                  "text (.txt, any name) and JSON Lines (.jsonl) files")
      ->required();
  command.add_option("--output", options.output, output)->required();
  command.add_flag("--overwrite", options.overwrite, "replace an output that is there");
  add_choice<data::DataFormat>(
      command, "--format", options.format,
      {{"auto", data::DataFormat::automatic}, {"text", data::DataFormat::text}},
      "of the input: text is what is not named otherwise, or said to be");
}

}  // namespace

void add_data_verb(CLI::App& app, int& status) {
  CLI::App* verb = app.add_subcommand("data", "Text to tokenizers and token files");
  verb->require_subcommand(1);
  const auto options = std::make_shared<DataOptions>();
  constexpr const char* kTokenizer =
      "\"bytes\", a tokenizer.json, or a folder with one or with vocab.json and merges.txt";

  CLI::App* train = add_command(*verb, options, status, "train-tokenizer",
                                "Learn a byte-level BPE from text", train_tokenizer);
  add_input_and_output(*train, *options, "folder for tokenizer.json, or a name that ends in .json");
  train
      ->add_option("--vocab-size,--vocab_size", options->vocab_size,
                   "tokens: 256 bytes, merges, and the separator")
      ->capture_default_str();

  CLI::App* write = add_command(*verb, options, status, "tokenize",
                                "Write text as a token file of llm.c's format", tokenize);
  add_input_and_output(*write, *options, "the token file, such as train.bin");
  write->add_option("--tokenizer", options->tokenizer, kTokenizer)->capture_default_str();
  add_encoding(*write, options->encoding);
  write
      ->add_option("--shard-tokens,--shard_tokens", options->shards.shard_tokens,
                   "write NAME_000001.bin, NAME_000002.bin, ... of at most so many tokens")
      ->check(CLI::Range(int64_t{1}, data::kMaxShardTokens));
  add_choice<data::TokenWidth>(*write, "--dtype", options->shards.width,
                               {{"auto", data::TokenWidth::automatic},
                                {"uint16", data::TokenWidth::u16},
                                {"uint32", data::TokenWidth::u32}},
                               "of an id; auto: by the vocabulary");

  CLI::App* ids = add_command(*verb, options, status, "encode",
                              "The token ids of texts, a document a line", encode);
  ids->add_option("input,--input", options->inputs, "text and JSON Lines files, - for stdin")
      ->required();
  ids->add_option("--tokenizer", options->tokenizer, kTokenizer)->capture_default_str();
  ids->add_flag("--no-added-tokens,--no_added_tokens", options->no_added_tokens,
                "without what the tokenizer puts round a text, such as its begin token");
  add_encoding(*ids, options->encoding);

  CLI::App* look = add_command(*verb, options, status, "show",
                               "What is in text, token files and tokenizers", show);
  look->add_option("files", options->inputs, "text, token files, tokenizers")->required();
  look->add_option("--tokenizer", options->tokenizer, kTokenizer)->capture_default_str();
  add_choice<data::DataFormat>(*look, "--format", options->format,
                               {{"auto", data::DataFormat::automatic},
                                {"text", data::DataFormat::text},
                                {"llm.c", data::DataFormat::llmc},
                                {"nanogpt", data::DataFormat::nanogpt},
                                {"megatron", data::DataFormat::megatron}},
                               "of the files; nanogpt: uint16 ids without a header");
  look->add_option("--preview-tokens,--preview_tokens", options->preview_tokens,
                   "tokens of the beginning to show")
      ->capture_default_str();
}

}  // namespace tessera::cli
