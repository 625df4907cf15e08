#pragma once

#include <cstddef>
#include <cstdint>

#include "comm/operation.h"

namespace tessera::comm {

/// What goes before the data of every operation, so that ranks that disagree find out before they
/// misunderstand each other's bytes.
struct MpiHeader {
  Words operation{};
  int64_t step = -1;
};

/// What a rank tells another one beside the operations. Sent as long as its text.
struct MpiLetter {
  enum class Kind : int32_t {
    failure,  ///< all end: the text says why, the same for everybody
    caller,   ///< all end: this rank stopped for its caller's reason, the text
    claim,    ///< to the lowest rank that is there, which decides whose failure was first: the text
    left,     ///< this rank has destroyed its communicator of that group
    waiting   ///< this rank is in that operation
  };
  static constexpr size_t kTextBytes = 3072;
  Kind kind = Kind::failure;
  int32_t from = 0;  ///< a rank of the world, as in everything that groups share
  int32_t group = 0;
  uint32_t text_bytes = 0;
  MpiHeader header;
  // What the rank that left had done: its collectives; messages to the reader, and from him.
  uint32_t collectives = 0;
  uint32_t sent = 0;
  uint32_t received = 0;
  char text[kTextBytes] = {};

  int64_t bytes() const { return static_cast<int64_t>(offsetof(MpiLetter, text) + text_bytes); }
};

/// The channels of a group.
struct MpiChannel {
  static constexpr int kHeaders = 0;
  static constexpr int kPieces = 1;   ///< of a collective, towards who works on them
  static constexpr int kResults = 2;  ///< and back
  static constexpr int kLetters = 3;
  static constexpr int kMessageHeaders = 4;
  static constexpr int kMessages = 5;
};

}  // namespace tessera::comm
