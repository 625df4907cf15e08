#pragma once

#include <sys/mman.h>

#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"

// Many ranks in one test, as threads or as processes: the same body runs on each. Where mpirun has
// started several copies of the tests, the ranks of a test are these copies (ranks_mpi.cpp).

namespace tessera::comm_test {

enum class Backend { thread, shm, mpi };
inline const char* name_of(Backend backend) {
  return backend == Backend::thread ? "thread" : backend == Backend::shm ? "shm" : "mpi";
}
/// What there is to be tested: thread and shm; under mpirun mpi, with as many ranks as there are.
std::vector<Backend> backends();
/// Of these, the numbers of ranks that can be had.
std::vector<int> possible_sizes(const std::vector<int>& wanted);

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

/// Zeroed pages that all ranks of the tests share.
void* map_shared(size_t bytes);

/// A zeroed T that rank threads and rank processes share.
template <class T>
class Shared {
 public:
  Shared() : value_(static_cast<T*>(map_shared(sizeof(T)))) {}
  ~Shared() { munmap(value_, sizeof(T)); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  T& operator*() const { return *value_; }

 private:
  T* value_;
};

}  // namespace tessera::comm_test
