#pragma once

#include "data/json_file.h"
#include "data/vocabulary.h"

namespace tessera::data {

/// Reads the steps before and after the model of a tokenizer.json: normalizer, pre_tokenizer,
/// post_processor and decoder. Throws ConfigError that names a component, or a use of one, that is
/// not supported, and what is. vocabulary.tokens is there already.
void read_pipeline(const nlohmann::json& root, const JsonFile& file, Vocabulary& vocabulary);

}  // namespace tessera::data
