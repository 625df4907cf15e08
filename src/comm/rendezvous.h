#pragma once

#include <chrono>
#include <string>

#include "comm/board.h"
#include "comm/handshake.h"
#include "comm/member.h"

// How processes of one host come to share a board without leaving anything behind: rank 0 makes an
// unnamed memory file (memfd) and listens on an abstract Unix socket, whose name exists only while
// somebody has it open; the others connect and are handed the file. Both vanish with their last
// process, however it ends. Only processes of the same user are let in, on either side.

namespace tessera::comm {

/// Who meets where.
struct Rendezvous {
  std::string name;  ///< the same on all ranks of a run, and on no others
  int rank;
  int size;
  std::chrono::milliseconds timeout;
  Callsigns called = nullptr;

  int world_rank(int of) const { return called ? called->ranks[static_cast<size_t>(of)] : of; }
};

/// Memory to share: a file without a name, and the board at its beginning.
struct SharedFile {
  Descriptor file;
  Board board;
};

/// Rank 0 makes it. Throws CommError that says what is needed and what is free.
SharedFile make_shared_file(const BoardLayout& layout, const Callsigns& called);

/// Rank 0's side: hands the file to the others as they come, and takes down who they are in their
/// seats. `host` is rank 0's member. Throws CommError that names ranks missing after the timeout, a
/// rank that came twice or with other settings, or one that died meanwhile.
void admit_ranks(const Rendezvous& rendezvous, const SharedFile& file, Member& host);

/// The others' side: the file that rank 0 hands out. Throws CommError when rank 0 is not there in
/// time, or refuses.
SharedFile join_ranks(const Rendezvous& rendezvous, const BoardLayout& layout);

}  // namespace tessera::comm
