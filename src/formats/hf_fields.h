#pragma once

// Only for the readers of config.json: an object whose keys are asked for one by one, which knows
// in the end what nobody asked for.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "spec/model_config.h"

namespace tessera::formats {

/// Asking for a key marks it as read; null is as good as absent. A value of the wrong type is a
/// problem, and absent.
class HfFields {
 public:
  /// `prefix` stands before keys in messages: "rope_parameters.". All three must outlive this.
  HfFields(const nlohmann::json& object, std::string prefix, std::vector<std::string>& problems)
      : object_(object), prefix_(std::move(prefix)), problems_(problems) {}

  std::optional<int64_t> integer(const std::string& key);
  std::optional<double> real(const std::string& key);
  std::optional<bool> boolean(const std::string& key);
  std::optional<std::string> text(const std::string& key);
  /// The object under the key; nullptr where there is none.
  const nlohmann::json* object(const std::string& key);
  const nlohmann::json* any(const std::string& key);
  /// Not there at all, where null has a meaning of its own.
  bool is_absent(const std::string& key) const;

  /// The integer, which must be there, under its name or another of the same meaning.
  int64_t required(const std::string& key, const std::string& alias = "");
  /// Absent, or just this value: any other is a problem, for the reason given.
  void expect(const std::string& key, const nlohmann::json& value, const std::string& why);
  /// Keys without a meaning for the model.
  void ignore(const std::vector<std::string_view>& keys);

  /// With their prefix: keys that are there, not null, and were not read.
  std::vector<std::string> unread() const;
  void problem(const std::string& key, const std::string& why);
  /// As the file has it, for messages.
  std::string value_text(const std::string& key) const;

 private:
  const nlohmann::json& object_;
  std::string prefix_;
  std::vector<std::string>& problems_;
  std::set<std::string, std::less<>> read_;
};

/// rope_theta, rope_scaling and rope_parameters; max_position_embeddings and head_dim are known.
void read_hf_rope(HfFields& fields, spec::ModelConfig& model, std::vector<std::string>& problems,
                  std::vector<std::string>& notes);

/// The same three keys, so that transformers 4 and 5 both find what they read.
void write_hf_rope(const spec::ModelConfig& model, nlohmann::ordered_json& config);

}  // namespace tessera::formats
