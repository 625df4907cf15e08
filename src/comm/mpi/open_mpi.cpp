// Open MPI behind MpiWorld and MpiPort. Every call of it happens under one lock, and none of them
// blocks: so it need not be thread-safe itself, and never waits in its own way, which is to spin.

#include <fmt/format.h>
#define OMPI_SKIP_MPICXX 1  // Open MPI 4 has C++ bindings of old, in a library of their own
#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>

#include "comm/mpi/world.h"
#include "core/error.h"

namespace tessera::comm {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

void check(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw MpiError(fmt::format("Open MPI's {} failed: {}", call, text));
}

// What has begun to come into memory that is given back is waited for: as long as a slow link may
// need, and not so long that a peer that died in the middle is told late.
constexpr milliseconds kRestComes{4000};

/// A message that nobody waits for.
struct Letter {
  std::vector<std::byte> bytes;
  MPI_Request request = MPI_REQUEST_NULL;
};

}  // namespace

struct MpiWorld::Library {
  std::mutex mutex;  // of every call of Open MPI, and of what follows
  int rank = 0;
  int size = 1;
  int next_group = 1;  // 0: the goodbyes
  int most_groups = 1;
  std::list<Letter> letters;
  bool silent = false;  // for ever: see MpiPort::give_up()

  void check_usable() const {
    if (!silent) return;
    throw MpiError("Open MPI is called no more, as a message that was given up has come in part");
  }
  bool is_over() const {
    int ended = 0;
    MPI_Finalized(&ended);
    return silent || ended != 0;
  }
  void test_letters() {
    check_usable();
    letters.remove_if([](Letter& letter) {
      int done = 0;
      check(MPI_Test(&letter.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      return done != 0;
    });
  }
};

bool MpiWorld::built_in() {
  return true;
}

std::string MpiWorld::library() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  return std::string(text, static_cast<size_t>(std::strcspn(text, ",")));
}

std::shared_ptr<MpiWorld> MpiWorld::join() {
  int begun = 0;
  MPI_Initialized(&begun);
  CHECK(begun == 0, "a process joins its world once");
  int granted = 0;
  check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &granted), "MPI_Init_thread");
  if (granted < MPI_THREAD_SERIALIZED) {
    throw core::CommError(
        "this Open MPI serves one thread alone (no MPI_THREAD_SERIALIZED), and communication "
        "beside computation needs two");
  }
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  auto library = std::make_unique<Library>();
  check(MPI_Comm_rank(MPI_COMM_WORLD, &library->rank), "MPI_Comm_rank");
  check(MPI_Comm_size(MPI_COMM_WORLD, &library->size), "MPI_Comm_size");
  int* most_tag = nullptr;
  int known = 0;
  check(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most_tag, &known), "MPI_Comm_get_attr");
  library->most_groups = (known != 0 ? *most_tag : 32767) / MpiPort::kChannels;
  return std::make_shared<MpiWorld>(std::move(library));
}

MpiWorld::MpiWorld(std::unique_ptr<Library> library) : library_(std::move(library)) {}

MpiWorld::~MpiWorld() {
  const auto end = Clock::now() + milliseconds(1000);
  const std::lock_guard lock(library_->mutex);
  while (!library_->is_over() && !library_->letters.empty() && Clock::now() < end) {
    try {
      library_->test_letters();
    } catch (const core::CommError&) {
      return;  // nobody is left to be told
    }
    std::this_thread::yield();
  }
}

int MpiWorld::rank() const {
  return library_->rank;
}
int MpiWorld::size() const {
  return library_->size;
}

int MpiWorld::propose_group() {
  const std::lock_guard lock(library_->mutex);
  return library_->next_group++;
}

void MpiWorld::adopt_group(int number) {
  const std::lock_guard lock(library_->mutex);
  library_->next_group = std::max(library_->next_group, number + 1);
}

bool MpiWorld::leave(milliseconds timeout) {
  std::vector<int> all(static_cast<size_t>(size()));
  for (int i = 0; i < size(); ++i) all[static_cast<size_t>(i)] = i;
  std::vector<std::byte> goodbyes(all.size());  // outlives the port, which receives into it
  std::vector<MpiPort::Slot> slots;
  MpiPort port(std::shared_ptr<MpiWorld>(std::shared_ptr<void>(), this), all, 0);
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    port.post(peer, 0, goodbyes.data(), 1);
    slots.push_back(port.recv(peer, 0, &goodbyes[static_cast<size_t>(peer)], 1));
  }
  const auto end = Clock::now() + timeout;
  const auto all_done = [&] {
    port.poll();
    return std::all_of(slots.begin(), slots.end(), [&](int slot) { return port.done(slot); }) &&
           port.posted_all_sent();
  };
  while (!all_done()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  const std::lock_guard lock(library_->mutex);
  return MPI_Finalize() == MPI_SUCCESS;
}

struct MpiPort::Transfers {
  struct State {
    bool done = false;
    bool receives = false;
    int64_t bytes = 0;
  };
  std::vector<MPI_Request> requests;  // null: free, or done and not yet taken
  std::vector<State> states;
  std::vector<Slot> free;
  std::vector<int> indices;  // scratch of poll()
  std::vector<MPI_Status> statuses;
  int under_way = 0;

  Slot add(MPI_Request request, bool receives, int64_t bytes) {
    Slot slot;
    if (free.empty()) {
      slot = static_cast<Slot>(requests.size());
      requests.emplace_back();
      states.emplace_back();
    } else {
      slot = free.back();
      free.pop_back();
    }
    requests[static_cast<size_t>(slot)] = request;
    states[static_cast<size_t>(slot)] = {false, receives, bytes};
    ++under_way;
    return slot;
  }

  bool receiving() const {
    for (size_t i = 0; i < requests.size(); ++i) {
      if (requests[i] != MPI_REQUEST_NULL && states[i].receives) return true;
    }
    return false;
  }

  void withdraw_receives() {
    for (size_t i = 0; i < requests.size(); ++i) {
      if (requests[i] != MPI_REQUEST_NULL && states[i].receives) MPI_Cancel(&requests[i]);
    }
  }

  void let_go() {
    for (MPI_Request& request : requests) {
      if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
    }
    under_way = 0;
    requests.clear();
    states.clear();
    free.clear();
  }

  // Under the lock. How many transfers have ended; one that has failed is told when all are noted.
  int test() {
    if (under_way == 0) return 0;
    indices.resize(requests.size());
    statuses.resize(requests.size());
    int ended = 0;
    int failed = MPI_SUCCESS;
    const int status = MPI_Testsome(static_cast<int>(requests.size()), requests.data(), &ended,
                                    indices.data(), statuses.data());
    if (status != MPI_SUCCESS && status != MPI_ERR_IN_STATUS) check(status, "MPI_Testsome");
    if (ended == MPI_UNDEFINED) return 0;
    for (int i = 0; i < ended; ++i) {
      const MPI_Status& one = statuses[static_cast<size_t>(i)];
      const auto slot = static_cast<size_t>(indices[static_cast<size_t>(i)]);
      State& state = states[slot];
      state.done = true;
      --under_way;
      if (status == MPI_ERR_IN_STATUS && one.MPI_ERROR != MPI_SUCCESS) {
        failed = one.MPI_ERROR;
        requests[slot] = MPI_REQUEST_NULL;
      }
      int count = 0;
      if (state.receives && MPI_Get_count(&one, MPI_BYTE, &count) == MPI_SUCCESS) {
        state.bytes = count;
      }
    }
    check(failed, "transfer");
    return ended;
  }
};

MpiPort::MpiPort(std::shared_ptr<MpiWorld> world, std::vector<int> ranks, int group)
    : world_(std::move(world)),
      ranks_(std::move(ranks)),
      first_tag_(group * kChannels),
      transfers_(std::make_unique<Transfers>()) {
  if (group >= world_->impl().most_groups) {
    throw core::CommError("this Open MPI has no tags for more groups of ranks");
  }
  const auto me = std::find(ranks_.begin(), ranks_.end(), world_->rank());
  CHECK(me != ranks_.end(), "a rank is one of the group");
  rank_ = static_cast<int>(me - ranks_.begin());
}

MpiPort::~MpiPort() {
  give_up();
}

MpiPort::Slot MpiPort::send(int peer, int channel, const void* data, int64_t bytes) {
  MPI_Request request = MPI_REQUEST_NULL;
  const std::lock_guard lock(world_->impl().mutex);
  world_->impl().check_usable();
  check(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, ranks_[static_cast<size_t>(peer)],
                  first_tag_ + channel, MPI_COMM_WORLD, &request),
        "MPI_Isend");
  return transfers_->add(request, false, bytes);
}

MpiPort::Slot MpiPort::recv(int peer, int channel, void* data, int64_t bytes) {
  const int source = peer == kAnyPeer ? MPI_ANY_SOURCE : ranks_[static_cast<size_t>(peer)];
  MPI_Request request = MPI_REQUEST_NULL;
  const std::lock_guard lock(world_->impl().mutex);
  world_->impl().check_usable();
  check(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, source, first_tag_ + channel,
                  MPI_COMM_WORLD, &request),
        "MPI_Irecv");
  return transfers_->add(request, true, 0);
}

void MpiPort::post(int peer, int channel, const void* data, int64_t bytes) {
  const auto* begin = static_cast<const std::byte*>(data);
  Letter letter{{begin, begin + bytes}, MPI_REQUEST_NULL};
  const std::lock_guard lock(world_->impl().mutex);
  world_->impl().check_usable();
  check(MPI_Isend(letter.bytes.data(), static_cast<int>(bytes), MPI_BYTE,
                  ranks_[static_cast<size_t>(peer)], first_tag_ + channel, MPI_COMM_WORLD,
                  &letter.request),
        "MPI_Isend");
  world_->impl().letters.push_back(std::move(letter));
}

bool MpiPort::poll() {
  const std::lock_guard lock(world_->impl().mutex);
  world_->impl().check_usable();
  if (!world_->impl().letters.empty()) world_->impl().test_letters();
  return transfers_->test() > 0;
}

bool MpiPort::posted_all_sent() {
  const std::lock_guard lock(world_->impl().mutex);
  world_->impl().test_letters();
  return world_->impl().letters.empty();
}

bool MpiPort::done(Slot slot) const {
  return transfers_->states[static_cast<size_t>(slot)].done;
}

int64_t MpiPort::take(Slot slot) {
  CHECK(done(slot), "only what is done can be taken");
  transfers_->free.push_back(slot);
  transfers_->states[static_cast<size_t>(slot)].done = false;
  return transfers_->states[static_cast<size_t>(slot)].bytes;
}

// Open MPI withdraws a receive that nothing has come for, and no sends. Whoever sends to a rank
// that gave up would wait for ever: the request is let go, and ends by itself or with the process.
void MpiPort::give_up() {
  MpiWorld::Library& library = world_->impl();
  const auto end = Clock::now() + kRestComes;
  std::unique_lock lock(library.mutex);
  if (library.is_over()) return;
  transfers_->withdraw_receives();
  while (transfers_->receiving() && Clock::now() < end) {
    try {
      library.test_letters();  // a peer may have to hear of the failure before it goes on
      transfers_->test();
    } catch (const MpiError&) {
      // On the way out already.
    }
    lock.unlock();  // other groups are not given up
    std::this_thread::yield();
    lock.lock();
  }
  library.silent = library.silent || transfers_->receiving();
  if (!library.silent) transfers_->let_go();
}

}  // namespace tessera::comm
