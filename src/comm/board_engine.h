#pragma once

#include <memory>
#include <string>

#include "comm/engine.h"
#include "comm/member.h"
#include "comm/pool.h"

namespace tessera::comm {

/// Calls over shared memory, for threads and for processes: which algorithm serves which.
class BoardEngine final : public Engine {
 public:
  /// `pool`: where groups that are split off get their memory.
  BoardEngine(std::unique_ptr<Member> member, std::shared_ptr<Pool> pool, const char* backend)
      : pool_(std::move(pool)), member_(std::move(member)), backend_(backend) {}
  ~BoardEngine() override;

  int rank() const override { return member_->rank(); }
  int size() const override { return member_->size(); }
  void execute(const Call& call, Traffic& traffic, bool may_spin) override;
  std::unique_ptr<Engine> split(int color, const std::string& name) override;
  void interrupt() override { member_->interrupt(); }
  int64_t memory_bytes() const override { return member_->board().layout().total_bytes / size(); }
  const char* backend() const override { return backend_; }
  void set_step(int64_t step) override { member_->set_step(step); }
  void set_away(int more) override { member_->set_away(more); }
  void abort(const std::string& why) override { member_->stop(Notice::Origin::caller, why); }

 private:
  std::shared_ptr<Pool> pool_;
  std::unique_ptr<Member> member_;
  const char* backend_;
  int64_t where_ = -1;  // this group's board in the pool; the world's is not there
};

/// What make_shm_communicator() stands on; there are at least two ranks.
std::unique_ptr<Engine> make_shm_engine(int rank, int size, const std::string& rendezvous,
                                        const CommOptions& options, Callsigns called = nullptr);

}  // namespace tessera::comm
