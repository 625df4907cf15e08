// Ranks as processes of one host: a board in a memory file that rank 0 hands to the others.

#include <unistd.h>

#include <utility>

#include "comm/board_engine.h"
#include "comm/communicator.h"
#include "comm/cores.h"
#include "comm/rendezvous.h"

namespace tessera::comm {

namespace {

std::unique_ptr<Member> sit_down(const Board& board, int rank, const CommOptions& options) {
  board.step(rank).store(-1);
  board.seat(rank).cpus = affinity_cores();
  return std::make_unique<Member>(board, rank, options, std::make_unique<Liveness>(board.size()));
}

struct Met {
  std::unique_ptr<Member> member;
  std::shared_ptr<Pool> pool;
};

Met meet(const Rendezvous& rendezvous, const CommOptions& options) {
  const BoardLayout layout = BoardLayout::of(rendezvous.size, options.staging_bytes);
  SharedFile file = rendezvous.rank == 0 ? make_shared_file(layout, rendezvous.called)
                                         : join_ranks(rendezvous, layout);
  if (rendezvous.rank == 0) {
    Seat& seat = file.board.seat(0);
    seat.pid = getpid();
    seat.start_time = start_time_of(getpid());
    seat.state.store(Seat::State::joined);
  }
  auto member = sit_down(file.board, rendezvous.rank, options);
  if (rendezvous.rank == 0) admit_ranks(rendezvous, file, *member);
  return {std::move(member), std::make_shared<FilePool>(std::move(file.file), file.board)};
}

}  // namespace

std::unique_ptr<Engine> make_shm_engine(int rank, int size, const std::string& rendezvous,
                                        const CommOptions& options, Callsigns called) {
  auto [member, pool] = meet({rendezvous, rank, size, options.timeout, std::move(called)}, options);
  // The first turn: everybody is here, and has said what cores it may use.
  member->enter({OperationKind::start}, nullptr);
  member->take_turn();
  member->finish();
  member->learn_cores();
  return std::make_unique<BoardEngine>(std::move(member), std::move(pool), "shm");
}

std::unique_ptr<Communicator> make_shm_communicator(int rank, int size,
                                                    const std::string& rendezvous,
                                                    const CommOptions& options) {
  CHECK(size >= 1 && rank >= 0 && rank < size, "a rank is one of the group");
  if (size == 1) return make_self_communicator();
  return std::make_unique<Communicator>(make_shm_engine(rank, size, rendezvous, options));
}

}  // namespace tessera::comm
