#include "parallel/pipeline/stream_exchange.h"

#include <algorithm>
#include <cstring>

#include "core/fault.h"

namespace tessera::parallel {

using comm::Call;

StreamExchange::StreamExchange(comm::Communicator& group, core::DType dtype, int64_t most_elements,
                               int64_t buffers_to_send, core::MemoryLedger& ledger)
    : group_(group),
      dtype_(dtype),
      most_elements_(most_elements),
      buffers_to_send_(static_cast<size_t>(buffers_to_send)),
      ledger_(ledger) {}

void StreamExchange::begin(std::map<int, std::deque<Arrival>> arrivals) {
  CHECK(aside_.empty() && lent_.empty(), "a step begins while streams of the last are under way");
  peers_.clear();
  for (auto& [peer, expected] : arrivals) {
    Incoming& from = peers_[peer];
    from.peer = peer;
    from.arrivals = std::move(expected);
    post(from);
  }
}

void StreamExchange::post(Incoming& from) {
  if (from.arrivals.empty()) return;
  from.posted = true;
  from.buffer = free_buffer();
  const View buffer = buffer_view(from.buffer, from.arrivals.front().elements);
  from.handle = group_.start(Call::recv(buffer, from.peer));
}

StreamExchange::Incoming& StreamExchange::sender_of(const Key& key) {
  const auto sends_it = [&](const auto& peer) {
    const std::deque<Arrival>& arrivals = peer.second.arrivals;
    return std::any_of(arrivals.begin(), arrivals.end(),
                       [&](const Arrival& arrival) { return arrival.key == key; });
  };
  const auto found = std::find_if(peers_.begin(), peers_.end(), sends_it);
  CHECK(found != peers_.end(), "a stream that nobody sends");
  return found->second;
}

void StreamExchange::take(const Key& key, View out) {
  Incoming* from = aside_.count(key) > 0 ? nullptr : &sender_of(key);
  while (aside_.count(key) == 0) {
    if (!from->posted) post(*from);
    from->handle.wait();
    from->posted = false;
    aside_[from->arrivals.front().key] = from->buffer;
    from->arrivals.pop_front();
  }
  const size_t buffer = aside_[key];
  const View stream = buffer_view(buffer, out.elements());
  // A stale stream is what lies where the last one was taken.
  if (!TESSERA_FAULT("pp_stale_stream") || key.second == 0) {
    std::memcpy(out.data, stream.data, static_cast<size_t>(out.bytes()));
  }
  aside_.erase(key);
  free_.push_back(buffer);
  if (from != nullptr) post(*from);
}

View StreamExchange::outgoing(const Key& key, int peer, const core::Shape& shape) {
  if (peer == group_.rank()) {
    const size_t buffer = free_buffer();
    aside_[key] = buffer;
    return buffer_view(buffer, shape.elements()).reshaped(shape);
  }
  if (idle_ == 0 && ring_.size() < buffers_to_send_) {
    Outgoing fresh;
    fresh.memory = core::Tensor(ledger_, core::Category::communication, dtype_, {most_elements_});
    ring_.push_back(std::move(fresh));
  } else {
    if (idle_ > 0) --idle_;
    ring_.front().handle.wait();
    ring_.push_back(std::move(ring_.front()));
    ring_.pop_front();
  }
  Outgoing& next = ring_.back();
  next.key = key;
  next.shape = shape;
  return next.memory.view().slice(0, {shape.elements()}).reshaped(shape);
}

void StreamExchange::send(const Key& key, int peer) {
  if (peer == group_.rank()) return;
  Outgoing& newest = ring_.back();
  CHECK(newest.key == key, "streams are sent in the order in which they were written");
  newest.handle =
      group_.start(Call::send(newest.memory.view().slice(0, {newest.shape.elements()}), peer));
}

void StreamExchange::send(const Key& key, int peer, ConstView stream) {
  lent_[key] = group_.start(Call::send(stream.reshaped({stream.elements()}), peer));
}

void StreamExchange::settle(const Key& key) {
  const auto found = lent_.find(key);
  if (found == lent_.end()) return;
  found->second.wait();
  lent_.erase(found);
}

void StreamExchange::finish() {
  for (auto& [key, handle] : lent_) handle.wait();
  lent_.clear();
  for (Outgoing& out : ring_) out.handle.wait();
  idle_ = ring_.size();
}

size_t StreamExchange::free_buffer() {
  if (free_.empty()) {
    free_.push_back(buffers_.size());
    buffers_.emplace_back(ledger_, core::Category::communication, dtype_,
                          core::Shape{most_elements_});
  }
  const size_t buffer = free_.back();
  free_.pop_back();
  return buffer;
}

View StreamExchange::buffer_view(size_t buffer, int64_t elements) const {
  return buffers_[buffer].view().slice(0, {elements});
}

}  // namespace tessera::parallel
