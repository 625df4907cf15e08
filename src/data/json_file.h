#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace tessera::data {

/// How the readers of tokenizer files look at JSON; it knows the file's name, for messages.
class JsonFile {
 public:
  using Json = nlohmann::json;

  explicit JsonFile(std::string where) : where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  /// Throws ConfigError: the tokenizer's name, then `why`.
  [[noreturn]] void refuse(const std::string& why) const;

  /// The object that `text` is. `name` is a file's, when it is not where() itself.
  Json object(std::string_view text, std::string_view name = {}) const;
  /// object[key], or null where there is none.
  static const Json& at(const Json& object, const char* key);
  /// The string there; empty where there is none or null. Throws for another kind of value.
  std::string text(const Json& object, const char* key) const;
  /// The same for a flag; `otherwise` where there is none or null.
  bool flag(const Json& object, const char* key, bool otherwise) const;
  /// An id, 0 … 2^31 − 1. `token` is what has it, for the message.
  int64_t id(const Json& value, const std::string& token) const;

  /// A value as short JSON text for messages, however deep or long it is.
  static std::string shown(const Json& value, int depth = 2);
  static std::string shown(const std::string& text);

 private:
  std::string where_;
};

}  // namespace tessera::data
