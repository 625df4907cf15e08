#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/mpi/letter.h"
#include "comm/mpi/world.h"
#include "comm/options.h"

namespace tessera::comm {

/// What all groups of one world share on a rank: what the others were seen to do, and the failure
/// that ends them all. Ranks are those of the world. Any thread uses it.
///
/// The first failure is to be told by all. Who finds one claims it from the lowest rank that is
/// not itself missing; that rank tells everybody the first claim it gets. One that does not answer,
/// since it computes, is not waited for long: the claim is then told as it is.
class MpiDesk {
 public:
  /// `port`: of all ranks of the world.
  MpiDesk(std::unique_ptr<MpiPort> port, const CommOptions& options);
  MpiDesk(const MpiDesk&) = delete;
  MpiDesk& operator=(const MpiDesk&) = delete;

  int rank() const { return port_->rank(); }
  int size() const { return port_->size(); }
  /// As Open MPI counts them.
  const std::vector<int>& process_ranks() const { return port_->world_ranks(); }
  const std::shared_ptr<MpiWorld>& world() const { return port_->world(); }
  const CommOptions& options() const { return options_; }
  /// Whether ranks have a core each, so that waiting may spin.
  bool spins() const { return spins_.load(std::memory_order_relaxed); }
  void let_spin(bool may) { spins_.store(may, std::memory_order_relaxed); }

  /// The host of each rank; to be told before anything is counted.
  void set_hosts(std::vector<int> host_of) { host_of_ = std::move(host_of); }
  bool on_other_host(int rank) const {
    return !host_of_.empty() &&
           host_of_[static_cast<size_t>(rank)] != host_of_[static_cast<size_t>(this->rank())];
  }

  void set_step(int64_t step) { step_.store(step, std::memory_order_relaxed); }
  int64_t step() const { return step_.load(std::memory_order_relaxed); }

  /// A rank was seen to begin an operation of a group; or that one was seen to be over.
  void saw(int group, int rank, const MpiHeader& header);
  void saw_end(int group, const std::vector<int>& ranks, const Operation& operation);
  /// Tells the others, who may be about to say what they miss.
  void tell_waiting(int group, const Operation& operation);
  /// "in all-reduce #122 of step 3", "after barrier #4", "before its first operation"; of that
  /// group, and of another one where the rank has told that it waits there.
  std::string last_act(int group, int rank) const;

  /// What a rank had done in a group when it left it.
  struct Leaving {
    uint32_t collectives = 0;
    uint32_t sent = 0;
    uint32_t received = 0;
  };
  void leave(int group, int to, const Leaving& leaving);
  std::optional<Leaving> left(int group, int rank) const;

  /// Reads the letters that have come.
  void look();
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  /// Throws CommError if the world has failed, as it is told to somebody busy with `activity`.
  void check(const std::string& activity) const;
  /// Throws CommError: what `activity` came to, unless another rank's failure was first; all others
  /// are told. `missing`: ranks that need not be asked.
  [[noreturn]] void fail(const std::string& activity, const std::string& what,
                         const std::vector<int>& missing);
  /// Ends everything for a reason of the caller's. Never blocks.
  void stop(const std::string& why);

 private:
  struct Seen {
    MpiHeader header;
    bool over = false;
  };
  struct Wait {
    int group = -1;
    Operation operation;
  };
  using InGroup = std::pair<int, int>;  // group, rank
  struct Failure {
    MpiLetter::Kind kind;
    int rank;
    std::string text;
  };

  [[noreturn]] void throw_failure(const std::string& activity) const;
  void handle(const MpiLetter& letter);
  /// The lock is held.
  bool accept(const Failure& failure);
  void send(MpiLetter::Kind kind, int to, const std::string& text);
  void send_to_all(MpiLetter::Kind kind, const std::string& text);
  void wait_for_verdict();

  CommOptions options_;
  std::atomic<bool> spins_{false};
  std::vector<int> host_of_;
  std::atomic<int64_t> step_{-1};
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;  // of what follows
  std::map<InGroup, Seen> seen_;
  std::map<InGroup, Leaving> left_;
  std::vector<Wait> waits_;  // by rank: the last that it told
  std::optional<Failure> failure_;

  std::mutex reading_;  // of the letter that is received
  MpiLetter letter_;
  MpiPort::Slot slot_;
  std::unique_ptr<MpiPort> port_;  // goes first: it may be receiving the letter
};

}  // namespace tessera::comm
