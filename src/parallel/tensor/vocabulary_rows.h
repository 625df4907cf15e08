#pragma once

#include "account/parameter_table.h"
#include "model/parameters.h"

namespace tessera::parallel {

/// Which ids a rank of a tensor-parallel group has rows for, of a token embedding or a head's
/// weight [V, C] that is cut by rows. All ranks hold equally many, ceil(V / t); the last ones may
/// lie beyond the vocabulary. Those are zeros that nothing reads, and no gradient reaches them.
struct VocabularyRows {
  explicit VocabularyRows(const account::Parameter& part)
      : first(part.begin),
        count(part.shape[0] - part.padding),
        held(part.shape[0]),
        vocab_size(part.whole[0]) {}

  /// The rows of the ids alone.
  model::BoundParameter of(const model::BoundParameter& part) const {
    const auto rows = [&](model::View table) {
      return table ? table.slice(0, {count, table.shape.last()}) : table;
    };
    return {rows(part.value), rows(part.grad)};
  }

  int64_t first = 0;       ///< the first id
  int64_t count = 0;       ///< ids; may be 0
  int64_t held = 0;        ///< rows on every rank
  int64_t vocab_size = 0;  ///< V
};

}  // namespace tessera::parallel
