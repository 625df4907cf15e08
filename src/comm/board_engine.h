#pragma once

#include <memory>
#include <string>

#include "comm/engine.h"
#include "comm/member.h"

namespace tessera::comm {

/// Calls over shared memory, for threads and for processes: which algorithm serves which.
class BoardEngine final : public Engine {
 public:
  BoardEngine(std::unique_ptr<Member> member, const char* backend)
      : member_(std::move(member)), backend_(backend) {}

  int rank() const override { return member_->rank(); }
  int size() const override { return member_->size(); }
  void execute(const Call& call, Traffic& traffic, bool may_spin) override;
  int64_t memory_bytes() const override { return member_->board().layout().total_bytes / size(); }
  const char* backend() const override { return backend_; }
  void set_step(int64_t step) override { member_->set_step(step); }
  void abort(const std::string& why) override { member_->stop(Notice::Origin::caller, why); }

 private:
  std::unique_ptr<Member> member_;
  const char* backend_;
};

}  // namespace tessera::comm
