#include "train/run_trace.h"

#include "core/error.h"
#include "train/agreement.h"

namespace tessera::train {

RunTrace::RunTrace(const std::filesystem::path& folder, parallel::MeshGroups& groups)
    : groups_(groups) {
  comm::Communicator& world = groups.world();
  trace::Origin origin = trace::origin_now();
  world.broadcast(core::View{&origin, core::DType::u8, {int64_t{sizeof(origin)}}}, 0);
  agree(world, [&] {
    file_ =
        std::make_unique<trace::ChromeWriter>(folder.string(), world.rank(), world.size(), origin);
  });
  if (groups.mesh().pp > 1) predicted_.emplace(groups.config(), groups.coordinate());
  groups_.record(&recorder_);
}

RunTrace::~RunTrace() {
  groups_.record(nullptr);
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

void RunTrace::add_prediction(const StepResult& result) {
  if (!predicted_) return;
  for (trace::Span& span : predicted_->spans(result)) recorder_.add(std::move(span));
}

}  // namespace tessera::train
