#include "comm/mpi/desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "core/error.h"

namespace tessera::comm {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// How long a claim waits for its verdict: many times what a rank that waits needs to answer.
constexpr milliseconds kVerdict{500};

MpiLetter letter_of(MpiLetter::Kind kind, int from, const std::string& text) {
  MpiLetter letter;
  letter.kind = kind;
  letter.from = from;
  letter.text_bytes = static_cast<uint32_t>(std::min(text.size(), MpiLetter::kTextBytes));
  std::memcpy(letter.text, text.data(), letter.text_bytes);
  return letter;
}

}  // namespace

MpiDesk::MpiDesk(std::unique_ptr<MpiPort> port, const CommOptions& options)
    : options_(options), waits_(static_cast<size_t>(port->size())), port_(std::move(port)) {
  slot_ = port_->recv(MpiPort::kAnyPeer, MpiChannel::kLetters, &letter_, sizeof(letter_));
}

void MpiDesk::saw(int group, int rank, const MpiHeader& header) {
  const std::lock_guard lock(mutex_);
  seen_[{group, rank}] = {header, false};
  waits_[static_cast<size_t>(rank)].group = -1;
}

void MpiDesk::saw_end(int group, const std::vector<int>& ranks, const Operation& operation) {
  const Words words = pack(operation);
  const std::lock_guard lock(mutex_);
  for (const int rank : ranks) {
    Seen& seen = seen_[{group, rank}];
    if (seen.header.operation == words) seen.over = true;
  }
}

std::string MpiDesk::last_act(int group, int rank) const {
  const std::lock_guard lock(mutex_);
  std::string act = "before its first operation";
  if (const auto found = seen_.find({group, rank}); found != seen_.end()) {
    const auto& [header, over] = found->second;
    act = (over ? "after " : "in ") + name_of(unpack(header.operation));
    if (header.step >= 0) act += fmt::format(" of step {}", header.step);
  }
  const Wait& wait = waits_[static_cast<size_t>(rank)];
  if (wait.group < 0) return act;
  return act + ", waiting in " + name_of(wait.operation) +
         (wait.group == group ? "" : " of another group");
}

void MpiDesk::tell_waiting(int group, const Operation& operation) {
  MpiLetter letter = letter_of(MpiLetter::Kind::waiting, rank(), "");
  letter.group = group;
  letter.header = {pack(operation), step()};
  for (int to = 0; to < size(); ++to) {
    if (to != rank()) port_->post(to, MpiChannel::kLetters, &letter, letter.bytes());
  }
}

void MpiDesk::leave(int group, int to, const Leaving& leaving) {
  MpiLetter letter = letter_of(MpiLetter::Kind::left, rank(), "");
  letter.group = group;
  letter.collectives = leaving.collectives;
  letter.sent = leaving.sent;
  letter.received = leaving.received;
  port_->post(to, MpiChannel::kLetters, &letter, letter.bytes());
}

std::optional<MpiDesk::Leaving> MpiDesk::left(int group, int rank) const {
  const std::lock_guard lock(mutex_);
  const auto found = left_.find({group, rank});
  if (found == left_.end()) return std::nullopt;
  return found->second;
}

void MpiDesk::look() {
  const std::unique_lock reading(reading_, std::try_to_lock);
  if (!reading.owns_lock()) return;  // another thread is at it
  port_->poll();
  while (port_->done(slot_)) {
    port_->take(slot_);
    const MpiLetter letter = letter_;
    slot_ = port_->recv(MpiPort::kAnyPeer, MpiChannel::kLetters, &letter_, sizeof(letter_));
    handle(letter);
    port_->poll();
  }
}

void MpiDesk::handle(const MpiLetter& letter) {
  const std::string text(letter.text, letter.text_bytes);
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    switch (letter.kind) {
      case MpiLetter::Kind::failure:
      case MpiLetter::Kind::caller:
        accept({letter.kind, letter.from, text});
        return;
      case MpiLetter::Kind::claim:
        first = accept({MpiLetter::Kind::failure, letter.from, text});
        break;
      case MpiLetter::Kind::left:
        left_[{letter.group, letter.from}] = {letter.collectives, letter.sent, letter.received};
        return;
      case MpiLetter::Kind::waiting:
        waits_[static_cast<size_t>(letter.from)] = {letter.group, unpack(letter.header.operation)};
        return;
    }
  }
  if (first) send_to_all(MpiLetter::Kind::failure, text);
}

bool MpiDesk::accept(const Failure& failure) {
  if (failure_) return false;
  failure_ = failure;
  failed_.store(true, std::memory_order_release);
  return true;
}

void MpiDesk::check(const std::string& activity) const {
  if (failed()) throw_failure(activity);
}

void MpiDesk::throw_failure(const std::string& activity) const {
  const std::lock_guard lock(mutex_);
  if (failure_->kind == MpiLetter::Kind::failure) throw core::CommError(failure_->text);
  throw core::CommError(
      fmt::format("{}: rank {} stopped: {}", activity, failure_->rank, failure_->text));
}

void MpiDesk::fail(const std::string& activity, const std::string& what,
                   const std::vector<int>& missing) {
  const std::string text = (activity + ": " + what).substr(0, MpiLetter::kTextBytes);
  const auto is_missing = [&](int rank) {
    return std::find(missing.begin(), missing.end(), rank) != missing.end();
  };
  int judge = 0;
  while (judge != rank() && is_missing(judge)) ++judge;
  if (judge != rank()) {
    send(MpiLetter::Kind::claim, judge, text);
    wait_for_verdict();
  }
  bool first = false;
  {
    const std::lock_guard lock(mutex_);
    first = accept({MpiLetter::Kind::failure, rank(), text});
  }
  if (first) send_to_all(MpiLetter::Kind::failure, text);
  throw_failure(activity);
}

void MpiDesk::wait_for_verdict() {
  const auto end = Clock::now() + kVerdict;
  while (!failed() && Clock::now() < end) {
    try {
      look();
    } catch (const MpiError&) {
      return;  // nothing more comes
    }
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void MpiDesk::stop(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (!accept({MpiLetter::Kind::caller, rank(), why})) return;
  }
  send_to_all(MpiLetter::Kind::caller, why);
}

void MpiDesk::send(MpiLetter::Kind kind, int to, const std::string& text) {
  const MpiLetter letter = letter_of(kind, rank(), text);
  try {
    port_->post(to, MpiChannel::kLetters, &letter, letter.bytes());
  } catch (const MpiError&) {
    // They will notice by themselves.
  }
}

void MpiDesk::send_to_all(MpiLetter::Kind kind, const std::string& text) {
  for (int to = 0; to < size(); ++to) {
    if (to != rank()) send(kind, to, text);
  }
}

}  // namespace tessera::comm
