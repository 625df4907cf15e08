#include "comm/lanes.h"

namespace tessera::comm {

Lanes::Lanes(Engine* engine) : engine_(engine), collectives_(engine) {
  if (engine != nullptr) messages_.resize(2 * static_cast<size_t>(engine->size()));
}

Lanes::~Lanes() {
  bool busy = !collectives_.stop();
  for (const auto& queue : messages_) {
    if (queue != nullptr && !queue->stop()) busy = true;
  }
  if (busy) engine_->interrupt();
}

Queue& Lanes::of_message(const Call& call) {
  const bool receives = call.kind == OperationKind::recv;
  std::unique_ptr<Queue>& queue =
      messages_[2 * static_cast<size_t>(call.peer) + (receives ? 1 : 0)];
  if (queue == nullptr) {
    queue = std::make_unique<Queue>(engine_);
    queue->record(recorder_, lane_);
  }
  return *queue;
}

Traffic Lanes::traffic() const {
  Traffic sum = collectives_.traffic();
  for (const auto& queue : messages_) {
    if (queue != nullptr) sum += queue->traffic();
  }
  return sum;
}

double Lanes::waited_seconds() const {
  double sum = collectives_.waited_seconds();
  for (const auto& queue : messages_) {
    if (queue != nullptr) sum += queue->waited_seconds();
  }
  return sum;
}

double Lanes::busy_seconds() const {
  double sum = collectives_.busy_seconds();
  for (const auto& queue : messages_) {
    if (queue != nullptr) sum += queue->busy_seconds();
  }
  return sum;
}

void Lanes::record(trace::Recorder* recorder, trace::Lane lane) {
  recorder_ = recorder;
  lane_ = lane;
  collectives_.record(recorder, lane);
  for (const auto& queue : messages_) {
    if (queue != nullptr) queue->record(recorder, lane);
  }
}

}  // namespace tessera::comm
