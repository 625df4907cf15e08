#pragma once

#include <sys/mman.h>

#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"

// Many ranks in one test, as threads or as processes: the same body runs on each.

namespace tessera::comm_test {

enum class Backend { thread, shm };
inline const char* name_of(Backend backend) {
  return backend == Backend::thread ? "thread" : "shm";
}

/// How one rank ended.
struct Outcome {
  std::string report;  ///< what the body returned: what it found wrong, or nothing
  std::string error;   ///< of the CommError (or other exception) that ended it
  int signal = 0;      ///< that ended its process
};

struct RunOptions {
  comm::CommOptions comm{std::chrono::milliseconds{20000}};
  /// A rank that stops itself (SIGSTOP): killed once the others have ended.
  int stops = -1;
};

/// What a rank does. Returns what it found wrong, empty when all is well. In a process of its own
/// under shm: it shares nothing with the test but pages of `Shared`, and gtest does not hear it.
using Body = std::function<std::string(comm::Communicator&)>;

/// Runs the body on `size` ranks and collects how they ended.
std::vector<Outcome> run_ranks(Backend backend, int size, const Body& body,
                               const RunOptions& options = {});

/// Runs `body(rank)` in `size` processes without a communicator; exceptions end up in `error`.
std::vector<Outcome> run_processes(int size, const std::function<std::string(int)>& body,
                                   int stops = -1);

/// Fails the test unless every rank ended well.
void expect_all_well(const std::vector<Outcome>& outcomes);

/// A rendezvous of its own for each call.
std::string fresh_rendezvous();

/// A zeroed T that rank threads and rank processes share.
template <class T>
class Shared {
 public:
  Shared()
      : value_(static_cast<T*>(
            mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~Shared() { munmap(value_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T& operator*() const { return *value_; }

 private:
  T* value_;
};

}  // namespace tessera::comm_test
