#pragma once

// Other systems' configurations, read as far as they mean something here. Pure functions from text:
// every key of the input ends in one of two lists, what it became and why it became nothing.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/options.h"

namespace tessera::formats {

/// Whose configuration it is.
enum class System : uint8_t {
  megatron,    ///< Megatron-LM: an argument list, or a shell script that holds one
  deepspeed,   ///< DeepSpeed: JSON
  accelerate,  ///< Hugging Face Accelerate: YAML
  torchtitan,  ///< torchtitan: TOML of its job config, and that one's older names
};
/// Their names, in that order.
const std::vector<std::string_view>& system_names();
std::optional<System> system_named(std::string_view name);

/// A key of ours and where its value comes from.
struct MappedKey {
  std::string key;                   ///< "training.micro_batch_size"
  std::string text;                  ///< the value as a person writes it
  std::optional<spec::Value> value;  ///< of the key's type; empty for a key of a later version
  std::vector<std::string> sources;  ///< "--micro-batch-size 4"; or what the system's default is
  std::string refused;  ///< empty, or why this version would refuse it: printed as a comment
};

/// Why a key of the input became none of ours.
enum class Unmapped : uint8_t {
  no_counterpart,  ///< nothing here does what it does
  not_yet,         ///< known here, and not in this version
  value,           ///< the key has a counterpart, this value of it has not
  unknown_value,   ///< it stands for a value that the file does not say: $VAR, "auto"
  already,         ///< what happens here anyway
  elsewhere,       ///< said on the command line, or by the launcher
};
std::string_view name_of(Unmapped kind);

struct UnmappedKey {
  std::string source;  ///< as in the input: "--fp16", "optimizer.type = \"Lamb\""
  std::string where;   ///< "zero3.json:12", "argument 5"; may be empty
  Unmapped kind = Unmapped::no_counterpart;
  std::string reason;
};

struct ImportResult {
  System system = System::megatron;
  std::vector<MappedKey> mapped;  ///< in the order of spec::options(), each key once
  std::vector<UnmappedKey> unmapped;
};

/// Reads the text of a file; `where` names it in messages. Throws ConfigError, with the place, for
/// a text that is not of the system's form.
ImportResult import_config(System system, const std::string& text, const std::string& where);
/// Reads Megatron's arguments as a program is given them.
ImportResult import_megatron_arguments(const std::vector<std::string>& words);

/// The mapped keys as TOML, each with its source in a comment; those that this version would refuse
/// are comments as a whole. Without these, and beside data.path, `config check` takes it.
std::string to_toml(const ImportResult& result);
/// Everything as one JSON object: from, toml, mapped[], unmapped[].
std::string to_json(const ImportResult& result);
/// The unmapped keys for people, a line each, by kind; empty when there are none.
std::string describe(const ImportResult& result);

}  // namespace tessera::formats
