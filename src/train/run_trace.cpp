#include "train/run_trace.h"

#include "core/error.h"
#include "train/agreement.h"

namespace tessera::train {

RunTrace::RunTrace(const std::filesystem::path& folder, comm::Communicator& dp) : dp_(dp) {
  trace::Origin origin = trace::origin_now();
  dp_.broadcast(core::View{&origin, core::DType::u8, {int64_t{sizeof(origin)}}}, 0);
  agree(dp_, [&] {
    file_ = std::make_unique<trace::ChromeWriter>(folder.string(), dp_.rank(), dp_.size(), origin);
  });
  dp_.record(&recorder_, trace::Lane::dp);
}

RunTrace::~RunTrace() {
  dp_.record(nullptr, trace::Lane::dp);
  try {
    file_->write(recorder_.take());
  } catch (const std::exception&) {
    // The run ends anyway, and has an end of its own to tell.
  }
}

void RunTrace::begin_step(int64_t step) {
  file_->write(recorder_.take());
  recorder_.set_step(step);
}

}  // namespace tessera::train
