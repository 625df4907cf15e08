#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/options.h"

namespace tessera::formats {

/// A key of a TOML text with its value: a scalar, an array, or a table without keys.
struct TomlLeaf {
  std::string key;  ///< "training.steps": the tables it lies in, divided by dots
  /// Of a scalar, or a list of texts or integers; empty for anything else.
  std::optional<spec::Value> value;
  std::vector<std::string> items;  ///< each value as text; none of an empty table
  std::string text;                ///< the value as TOML writes it
  uint32_t line = 0;
  bool table = false;  ///< one without keys
};

/// Where a text is not TOML.
struct TomlError {
  uint32_t line = 0;
  uint32_t column = 0;
  std::string why;
};

struct TomlLeaves {
  std::vector<TomlLeaf> leaves;  ///< in the order of the text
  std::optional<TomlError> error;
};

/// Reads TOML 1.0. Nothing is thrown for a text that is none. The one place that knows toml++.
TomlLeaves read_toml(const std::string& text);

/// The tables of an array of tables, each with its own leaves.
struct TomlTables {
  std::vector<std::vector<TomlLeaf>> tables;
  std::optional<TomlError> error;
};

/// The [[name]]s of a text in their order; none where there is no such array at its top.
TomlTables read_toml_tables(const std::string& text, const std::string& name);

}  // namespace tessera::formats
