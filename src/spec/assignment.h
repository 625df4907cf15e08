#pragma once

// From "key = value", wherever it was written, to a RunConfig. What reads files and command lines
// only makes assignments; what they mean, and what is wrong with them, is decided here.

#include <map>
#include <string>
#include <vector>

#include "spec/options.h"
#include "spec/run_config.h"

namespace tessera::spec {

/// One key set somewhere. Of `value` and `text` one counts: files know types, flags do not.
struct Assignment {
  std::string key;             ///< "training.steps"; dashes are underscores
  std::optional<Value> value;  ///< typed; empty: read `text` as the option's type
  std::string text;            ///< as the user wrote it
  bool unsupported = false;    ///< a value of a type that no option has: a date, a table
  std::string where;           ///< "run.toml:12", "--training.steps"
};

struct AssignmentResult {
  RunConfig config;
  std::vector<Violation> violations;         ///< unknown keys, wrong types, unknown words
  std::map<std::string, Assignment> origin;  ///< the assignment that each key's value comes from
};

/// The defaults, under the last preset or Hugging Face folder named, under the assignments in order
/// (a later one wins); where there is neither, the model's keys start from its family's. Mistakes
/// are collected; the keys they concern keep their defaults. `hf` is the model of the folder that
/// the last model.hf names, read by whoever may read files.
AssignmentResult assign(const std::vector<Assignment>& assignments,
                        const std::optional<ModelConfig>& hf = std::nullopt);

/// `result.violations` and what validate() finds in its config, with the place and the wording of
/// the user's. A key that could not be read is not judged a second time.
std::vector<Violation> all_violations(const AssignmentResult& result, int64_t world_size);

/// The mistake of naming a key that does not exist, with the name that was probably meant.
Violation unknown_key(const std::string& key);

}  // namespace tessera::spec
