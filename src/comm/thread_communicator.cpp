// Ranks as threads: a board in memory of this process, every seat taken from the start.

#include "comm/board_engine.h"
#include "comm/communicator.h"
#include "comm/cores.h"

namespace tessera::comm {

std::vector<std::unique_ptr<Communicator>> make_thread_communicators(int size,
                                                                     const CommOptions& options) {
  CHECK(size >= 1, "a group has at least one rank");
  std::vector<std::unique_ptr<Communicator>> communicators;
  if (size == 1) {
    communicators.push_back(make_self_communicator());
    return communicators;
  }
  const BoardLayout layout = BoardLayout::of(size, options.staging_bytes);
  const Board board(Region::anonymous(layout.total_bytes), layout);
  const auto pool = std::make_shared<ThreadPool>();
  for (int rank = 0; rank < size; ++rank) {
    board.step(rank).store(-1);
    board.seat(rank).cpus = affinity_cores();
    board.seat(rank).state.store(Seat::State::joined);
  }
  for (int rank = 0; rank < size; ++rank) {
    auto member = std::make_unique<Member>(board, rank, options, nullptr);
    member->learn_cores();
    communicators.push_back(std::make_unique<Communicator>(
        std::make_unique<BoardEngine>(std::move(member), pool, "thread")));
  }
  return communicators;
}

}  // namespace tessera::comm
