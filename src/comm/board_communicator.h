#pragma once

#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/member.h"

namespace tessera::comm {

/// A communicator over shared memory: the algorithms, and the checks before them. A call that
/// breaks this rank's own contract (shapes, dtypes, ranks out of range) is an InternalError and
/// leaves the communicator as it was.
class BoardCommunicator final : public Communicator {
 public:
  BoardCommunicator(std::unique_ptr<Member> member, const char* backend)
      : member_(std::move(member)), backend_(backend) {}

  int rank() const override { return member_->rank(); }
  int size() const override { return member_->size(); }
  void all_reduce(View inout, ReduceOp op) override;
  void reduce_scatter(View out, ConstView in, ReduceOp op) override;
  void all_gather(View out, ConstView in) override;
  void broadcast(View inout, int root) override;
  void send(ConstView in, int peer) override;
  void recv(View out, int peer) override;
  void barrier() override;
  const Traffic& traffic() const override { return traffic_; }
  int64_t memory_bytes() const override { return member_->board().layout().total_bytes / size(); }
  void set_step(int64_t step) override { member_->set_step(step); }
  void abort(const std::string& why) override { member_->stop(Notice::Origin::caller, why); }
  const char* backend() const override { return backend_; }

 private:
  std::unique_ptr<Member> member_;
  const char* backend_;
  Traffic traffic_;
};

}  // namespace tessera::comm
