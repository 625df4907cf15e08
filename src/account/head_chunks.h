#pragma once

// How the loss head goes through a vocabulary and a micro-batch's rows, whose logits are never
// there all at once. The head does as this says (model/loss_head.h), and memory and traffic follow.

#include <algorithm>
#include <cstdint>

#include "core/dtype.h"

namespace tessera::account {

/// Rows of a vocabulary that each of `tp` ranks holds; the last ones may lie beyond its end.
constexpr int64_t vocabulary_rows(int64_t vocab_size, int64_t tp) {
  return (vocab_size + tp - 1) / tp;
}

/// Elements from one row of logits to the next: V rounded up to a multiple of 32, because bf16
/// products that read rows of an odd length transposed run at half speed.
constexpr int64_t head_row_stride(int64_t vocab_size) {
  return (vocab_size + 31) / 32 * 32;
}

/// How many rows the head takes at once, of `sequences` runs of `sequence_rows` rows that may be
/// taken together but not apart: whole runs, or equal pieces of one where a run alone is too many
/// (the last may be smaller); the fewest chunks whose logits, head_row_stride elements of `dtype` a
/// row, fit in 64 MiB each. Large chunks matter: each one of a training pass reads and writes the
/// whole gradient of the head's weight. In fast mode all rows are one run; in the invariant mode,
/// a sequence is, so that what is multiplied together depends on its length alone.
int64_t head_chunk_rows(int64_t sequences, int64_t sequence_rows, int64_t vocab_size,
                        core::DType dtype);

/// Calls f(first row, rows) for the chunks, of at most `chunk` rows, of `rows` rows in runs of
/// `run`: a chunk is several runs, or ends where its run ends.
template <class F>
void for_each_head_chunk(int64_t rows, int64_t run, int64_t chunk, const F& f) {
  int64_t count = 0;
  for (int64_t first = 0; first < rows; first += count) {
    count = std::min(chunk, chunk < run ? run - first % run : rows - first);
    f(first, count);
  }
}

}  // namespace tessera::account
