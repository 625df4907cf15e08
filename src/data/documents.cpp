#include "data/documents.h"

#include <fmt/format.h>

#include "core/error.h"
#include "data/file.h"
#include "data/json_text.h"
#include "data/token_format.h"

namespace tessera::data {
namespace {

constexpr std::string_view kField = "text";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

[[noreturn]] void refuse(const std::string& path, const std::string& why_and_what_to_do) {
  throw core::ConfigError(fmt::format("The data file \"{}\" {}", path, why_and_what_to_do));
}

/// Files that would train without complaint, and teach nothing.
void refuse_other_formats(const std::string& path, std::string_view bytes, bool any_name) {
  struct Kind {
    std::string_view start;
    const char* what;
  };
  static constexpr Kind kKinds[] = {
      {"\x1F\x8B", "is compressed (gzip). Unpack it first: gunzip --keep."},
      {"\x28\xB5\x2F\xFD", "is compressed (zstd). Unpack it first: unzstd."},
      {std::string_view("\xFD"
                        "7zXZ\0",
                        6),
       "is compressed (xz). Unpack it first: unxz --keep."},
      {"BZh", "is compressed (bzip2). Unpack it first: bunzip2 --keep."},
      {"PK\x03\x04", "is a zip archive. Unpack it, and name the text files in it."},
      {"PAR1", "is a Parquet file. Export its text column as JSON Lines (.jsonl)."},
      {"%PDF-", "is a PDF. Export its text first."},
      {"\x93NUMPY", "is a NumPy array. Write its ids as a token file."},
  };
  for (const Kind& kind : kKinds) {
    if (bytes.starts_with(kind.start)) refuse(path, kind.what);
  }
  if (has_llmc_magic(bytes) || has_megatron_magic(bytes)) {
    refuse(path, "is a token file, not text: it is tokenized already.");
  }
  if (any_name) return;
  if (path.ends_with(".bin")) {
    refuse(path,
           "is named as token files are. Name text here, or say that it is text: --format text.");
  }
  if (path.ends_with(".json")) {
    refuse(path,
           "is a single JSON value. Write it as JSON Lines, an object with a \"text\" a line, "
           "under a name that ends in .jsonl.");
  }
}

DocumentCounts visit_lines(const std::string& path, std::string_view bytes,
                           const std::function<void(std::string_view)>& visit) {
  DocumentCounts counts;
  if (bytes.starts_with(kByteOrderMark)) bytes.remove_prefix(kByteOrderMark.size());
  for (int64_t number = 1; !bytes.empty(); ++number) {
    const size_t end = bytes.find('\n');
    const std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const JsonText parsed = json_text(line, kField);
    if (!parsed.text) {
      refuse(path, fmt::format("does not have an object with a string \"{}\" in line {}: {}{}.",
                               kField, number, parsed.fault,
                               parsed.column == 0 ? "" : fmt::format(" (byte {})", parsed.column)));
    }
    ++(parsed.text->empty() ? counts.empty : counts.documents);
    if (!parsed.text->empty()) visit(*parsed.text);
  }
  return counts;
}

}  // namespace

TextFormat text_format(std::string_view path) {
  return path.ends_with(".jsonl") || path.ends_with(".ndjson") ? TextFormat::json_lines
                                                               : TextFormat::plain;
}

DocumentCounts for_each_document(const std::string& path,
                                 const std::function<void(std::string_view)>& visit,
                                 bool any_name) {
  const core::MappedFile file = open_named(path, "The data file");
  const std::string_view bytes = file.bytes();
  refuse_other_formats(path, bytes, any_name);
  DocumentCounts counts;
  if (text_format(path) == TextFormat::json_lines) {
    counts = visit_lines(path, bytes, visit);
  } else if (!bytes.empty()) {
    visit(bytes);
    counts.documents = 1;
  }
  if (counts.documents == 0) {
    refuse(path, bytes.empty() ? "is empty: there is nothing to train on. Was it written whole?"
                               : "has no document with text in it. Was it written whole?");
  }
  return counts;
}

}  // namespace tessera::data
