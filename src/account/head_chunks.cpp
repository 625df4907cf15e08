#include "account/head_chunks.h"

namespace tessera::account {

int64_t head_chunk_rows(int64_t sequences, int64_t sequence_rows, int64_t vocab_size,
                        core::DType dtype) {
  constexpr int64_t kChunkBytes = int64_t{64} << 20;
  if (sequences * sequence_rows == 0) return 0;
  const int64_t most =
      std::max<int64_t>(1, kChunkBytes / (head_row_stride(vocab_size) * core::size_of(dtype)));
  const auto equal_parts = [](int64_t total, int64_t largest) {
    const int64_t parts = (total + largest - 1) / largest;
    return (total + parts - 1) / parts;
  };
  if (sequence_rows > most) return equal_parts(sequence_rows, most);
  return equal_parts(sequences, most / sequence_rows) * sequence_rows;
}

}  // namespace tessera::account
