#include "data/vocabulary.h"

#include <algorithm>

#include "data/byte_alphabet.h"

namespace tessera::data {

bool Vocabulary::has_fallback(uint8_t byte) const {
  const auto c = static_cast<char>(byte);
  const std::string spelled = to_alphabet({&c, 1});
  return std::all_of(spelled.begin(), spelled.end(), [&](char part) {
    return fallback_ids[static_cast<uint8_t>(part)] != kNoToken;
  });
}

}  // namespace tessera::data
