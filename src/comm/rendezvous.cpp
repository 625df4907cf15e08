#include "comm/rendezvous.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "comm/handshake.h"
#include "comm/liveness.h"
#include "comm/pool.h"
#include "core/error.h"

namespace tessera::comm {

namespace {

using core::CommError;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kSlice{20};  // between looks at who died, and between attempts to connect

/// Rank 0 at the door.
class Door {
 public:
  Door(const Rendezvous& rendezvous, const SharedFile& file, Member& host)
      : rendezvous_(rendezvous),
        file_(file),
        host_(host),
        deadline_(Clock::now() + rendezvous.timeout) {}

  void admit_all() {
    open();
    for (int arrived = 1; arrived < rendezvous_.size;) {
      wait_for_news();
      for (size_t i = 0; i < waiting_.size();) {
        Hello hello;
        const ssize_t length =
            recv(waiting_[i].get(), &hello, sizeof(hello), MSG_DONTWAIT | MSG_TRUNC);
        if (length < 0 && (errno == EAGAIN || errno == EINTR)) {
          ++i;
          continue;
        }
        if (length == sizeof(hello) && hello.magic == Hello::kMagic) {
          admit(waiting_[i], hello);
          ++arrived;
        }
        waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
      }
      check();
    }
  }

 private:
  [[noreturn]] void fail(const std::string& what) {
    const std::string here = fmt::format("rendezvous \"{}\"", rendezvous_.name);
    std::string why = here + ": " + what;
    if (!host_.stop(Notice::Origin::failure, why)) why = file_.board.notice_text(here);
    // Those at the door are told too; they have no board to read it from.
    fcntl(listener_.get(), F_SETFL, O_NONBLOCK);
    while (let_in()) {
    }
    for (const Descriptor& connection : waiting_) refuse(connection, why);
    throw CommError(why);
  }

  static void refuse(const Descriptor& connection, const std::string& why) {
    Answer text;
    std::memcpy(text.why, why.data(), std::min(why.size(), sizeof(text.why) - 1));
    answer(connection, text, -1);
  }

  void open() {
    listener_ = make_socket();
    socklen_t length = 0;
    const sockaddr_un address = address_of(rendezvous_.name, &length);
    while (bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
      if (errno != EADDRINUSE) fail(std::strerror(errno));
      if (Clock::now() >= deadline_) fail("another run is still meeting under this name");
      poll(nullptr, 0, static_cast<int>(kSlice.count()));
    }
    if (listen(listener_.get(), SOMAXCONN) != 0) fail(std::strerror(errno));
  }

  // Waits a slice for somebody to come or to speak, and lets in who comes.
  void wait_for_news() {
    std::vector<pollfd> news{{listener_.get(), POLLIN, 0}};
    for (const Descriptor& connection : waiting_) news.push_back({connection.get(), POLLIN, 0});
    poll(news.data(), news.size(), static_cast<int>(kSlice.count()));
    if ((news[0].revents & POLLIN) != 0) let_in();
  }

  // Whether somebody was there; other users are sent away without a word.
  bool let_in() {
    Descriptor connection(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) return false;
    if (credentials_of(connection).uid == geteuid()) waiting_.push_back(std::move(connection));
    return true;
  }

  void admit(const Descriptor& connection, const Hello& hello) {
    const std::string objection = object_to(hello, credentials_of(connection).pid);
    if (!objection.empty()) fail(objection);  // this one is told with the others
    Seat& seat = file_.board.seat(hello.rank);
    seat.pid = hello.pid;
    seat.start_time = hello.start_time;
    seat.state.store(Seat::State::joined);
    Answer text;
    text.welcome = 1;
    answer(connection, text, file_.file.get());
  }

  std::string object_to(const Hello& hello, pid_t seen_pid) const {
    if (hello.size != rendezvous_.size) {
      return fmt::format("rank {} was started for {} ranks, rank {} for {}", hello.rank, hello.size,
                         rendezvous_.world_rank(0), rendezvous_.size);
    }
    if (hello.rank <= 0 || hello.rank >= rendezvous_.size) {
      return fmt::format("there is no rank {} among {}", hello.rank, rendezvous_.size);
    }
    const int rank = rendezvous_.world_rank(hello.rank);
    if (hello.region_bytes != file_.board.layout().total_bytes) {
      return fmt::format("rank {} would share {} bytes of memory, rank {} {}", rank,
                         hello.region_bytes, rendezvous_.world_rank(0),
                         file_.board.layout().total_bytes);
    }
    if (file_.board.seat(hello.rank).state.load() != Seat::State::absent) {
      return fmt::format("two processes came as rank {}: {} and {}", rank,
                         file_.board.seat(hello.rank).pid, hello.pid);
    }
    if (hello.pid != seen_pid) {
      return fmt::format(
          "rank {} runs in another PID namespace (it is {} to itself, {} here), "
          "where its death would not be noticed",
          rank, hello.pid, seen_pid);
    }
    return "";
  }

  void check() {
    const Board& board = file_.board;
    std::vector<int> missing;
    for (int rank = 1; rank < rendezvous_.size; ++rank) {
      const Seat::State state = board.seat(rank).state.load();
      if (state == Seat::State::absent) missing.push_back(board.world_rank(rank));
      if (state == Seat::State::left) fail(fmt::format("rank {} left", board.world_rank(rank)));
      if (host_.is_gone(rank)) {
        fail(fmt::format("rank {} died (pid {} is gone)", board.world_rank(rank),
                         board.seat(rank).pid));
      }
    }
    if (board.notice().raised.load()) fail("");
    if (!missing.empty() && Clock::now() >= deadline_) {
      fail(fmt::format("not arrived within {} s: rank {}",
                       std::chrono::duration<double>(rendezvous_.timeout).count(),
                       fmt::join(missing, ", rank ")));
    }
  }

  const Rendezvous& rendezvous_;
  const SharedFile& file_;
  Member& host_;
  Clock::time_point deadline_;
  Descriptor listener_;
  std::vector<Descriptor> waiting_;  // connected, yet to say hello
};

}  // namespace

SharedFile make_shared_file(const BoardLayout& layout, const Callsigns& called) {
  Descriptor file(memfd_create("tessera", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file) fail_for_memory(layout.total_bytes, layout.size, errno);
  take_pages(file.get(), 0, layout.total_bytes, layout.size);
  // It may grow: groups lie behind the board.
  fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL);
  const auto region = Region::of_file(file.get(), 0, layout.total_bytes);
  return {std::move(file), Board(region, layout, called)};
}

void admit_ranks(const Rendezvous& rendezvous, const SharedFile& file, Member& host) {
  Door(rendezvous, file, host).admit_all();
}

SharedFile join_ranks(const Rendezvous& rendezvous, const BoardLayout& layout) {
  const auto deadline = Clock::now() + rendezvous.timeout;
  socklen_t length = 0;
  const sockaddr_un address = address_of(rendezvous.name, &length);
  const Hello hello{Hello::kMagic, rendezvous.rank,         rendezvous.size,
                    getpid(),      start_time_of(getpid()), layout.total_bytes};
  // Rank 0 may not be there yet, or be a run under the same name that is about to end.
  for (; Clock::now() < deadline; poll(nullptr, 0, static_cast<int>(kSlice.count()))) {
    const Descriptor connection = make_socket();
    if (connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), length) != 0) {
      continue;
    }
    if (credentials_of(connection).uid != geteuid()) {
      throw CommError(fmt::format("rendezvous \"{}\" is held by another user", rendezvous.name));
    }
    if (::send(connection.get(), &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello)) continue;
    Answer text;
    Descriptor file;
    if (!receive_answer(connection, deadline, &text, &file)) continue;
    if (text.welcome == 0 || !file) {
      throw CommError(text.why);
    }
    const auto region = Region::of_file(file.get(), 0, layout.total_bytes);
    return {std::move(file), Board(region, layout, rendezvous.called)};
  }
  throw CommError(fmt::format(
      "rendezvous \"{}\": not arrived within {} s: rank {}, for which rank {} is waiting",
      rendezvous.name, std::chrono::duration<double>(rendezvous.timeout).count(),
      rendezvous.world_rank(0), rendezvous.world_rank(rendezvous.rank)));
}

}  // namespace tessera::comm
