#include "account/traffic.h"

namespace tessera::account {

int64_t bytes_sent(const Message& message, int64_t num_ranks, int64_t rank) {
  const int64_t peers = num_ranks - 1;
  if (peers <= 0) return 0;
  const int64_t elements = message.elements;
  int64_t sent = 0;
  switch (message.collective) {
    case Collective::all_reduce: {
      const int64_t own = elements / num_ranks + (rank < elements % num_ranks ? 1 : 0);
      sent = (elements - own) + peers * own;
      break;
    }
    // Divides by contract: every rank keeps one part and sends the others.
    case Collective::reduce_scatter:
      sent = elements / num_ranks * peers;
      break;
    case Collective::all_gather:
      sent = elements * peers;
      break;
    case Collective::broadcast:
      sent = rank == 0 ? elements * peers : 0;
      break;
  }
  return sent * message.element_bytes;
}

int64_t data_parallel_bytes(const ParameterTable& table, int64_t gradient_element_bytes,
                            int64_t num_ranks, int64_t rank, const std::vector<Message>& control) {
  int64_t bytes = 0;
  for (const Unit& unit : table.units) {
    Message gradient;
    gradient.elements = unit.padded_trainable_elements(1);
    gradient.element_bytes = gradient_element_bytes;
    bytes += bytes_sent(gradient, num_ranks, rank);
  }
  for (const Message& message : control) bytes += bytes_sent(message, num_ranks, rank);
  return bytes;
}

}  // namespace tessera::account
