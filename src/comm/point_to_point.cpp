// Messages from one rank to another, matched by their order.
//
// Idea: a ring of cells for each ordered pair of ranks, one writer and one reader, two counters. A
// message is cut into cells, an empty one is one empty cell; each cell says what message it is part
// of, so that the receiver notices a sender that means another one. The sender is done when the
// last cell is written: a message of up to kCells cells is buffered whole, and a longer one waits
// until the receiver has taken all but that much.
// Steps: ceil(S / cell), sender and receiver at work at once. Bytes: S.

#include <algorithm>

#include "comm/copy.h"
#include "comm/member.h"

namespace tessera::comm {

void Member::send(const void* data, Operation operation, int64_t* sent, bool may_spin) {
  const int peer = operation.peer;
  Channel& channel = board_.channel(rank_, peer);
  operation.sequence = ++sent_to_[static_cast<size_t>(peer)];
  begin_message(operation);
  const int64_t bytes = operation.elements * core::size_of(operation.dtype);
  uint32_t filled = channel.filled.value.load(std::memory_order_relaxed);
  int64_t done = 0;
  do {
    wait(operation, channel.drained, filled + 1 - BoardLayout::kCells, peer, may_spin);
    Cell& cell = board_.cell(rank_, peer, filled);
    cell.operation = pack(operation);
    cell.step = step();
    const int64_t part = std::min(bytes - done, board_.layout().cell_bytes);
    if (part > 0) {
      copy_for_peer(&cell + 1, static_cast<const std::byte*>(data) + done, part);
    }
    *sent += part;
    done += part;
    advance(channel.filled, ++filled);
  } while (done < bytes);
  end_message();
}

void Member::recv(void* data, Operation operation, bool may_spin) {
  const int peer = operation.peer;
  Channel& channel = board_.channel(peer, rank_);
  operation.sequence = ++received_from_[static_cast<size_t>(peer)];
  begin_message(operation);
  const int64_t bytes = operation.elements * core::size_of(operation.dtype);
  uint32_t drained = channel.drained.value.load(std::memory_order_relaxed);
  int64_t done = 0;
  do {
    wait(operation, channel.filled, drained + 1, peer, may_spin);
    const Cell& cell = board_.cell(peer, rank_, drained);
    const Operation theirs = unpack(cell.operation);
    if (theirs.elements != operation.elements || theirs.dtype != operation.dtype ||
        theirs.sequence != operation.sequence) {
      fail(operation, "the ranks disagree: rank " + std::to_string(board_.world_rank(rank_)) +
                          " called this, rank " + std::to_string(board_.world_rank(peer)) +
                          " called " + board_.describe(theirs, cell.step));
    }
    const int64_t part = std::min(bytes - done, board_.layout().cell_bytes);
    if (part > 0) {
      copy_of_whole(static_cast<std::byte*>(data) + done, &cell + 1, part, bytes);
    }
    done += part;
    advance(channel.drained, ++drained);
  } while (done < bytes);
  end_message();
}

}  // namespace tessera::comm
