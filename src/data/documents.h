#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tessera::data {

/// What a file of text holds.
enum class TextFormat : uint8_t {
  plain,       ///< the whole file is one document
  json_lines,  ///< .jsonl or .ndjson: a document a line, its "text"
};

/// What reading a file of text met.
struct DocumentCounts {
  int64_t documents = 0;  ///< with text in them
  int64_t empty = 0;      ///< without; passed over
};

/// Calls `visit` with every document of the file, in order; the text is borrowed for the call.
/// Bytes come as they are in the file: no translation of line ends, and malformed UTF-8 is kept.
/// Throws ConfigError for a file that is missing, unreadable, a folder, empty, or evidently
/// something else (compressed, a token file), and for a line that is not a JSON object with a
/// string "text", by its number. A .bin is something else, unless `any_name`.
DocumentCounts for_each_document(const std::string& path,
                                 const std::function<void(std::string_view)>& visit,
                                 bool any_name = false);

/// By the file's name.
TextFormat text_format(std::string_view path);

}  // namespace tessera::data
