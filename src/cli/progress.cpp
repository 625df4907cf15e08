#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace tessera::cli {

namespace {

/// mpirun lends its ranks a terminal, and writes what they say there to wherever it is told to.
bool is_terminal() {
  return isatty(STDOUT_FILENO) != 0 && std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr;
}

}  // namespace

Progress::Progress(int64_t first_step, int64_t last_step, int64_t log_freq)
    : first_step_(first_step),
      last_step_(last_step),
      log_freq_(log_freq),
      terminal_(is_terminal()),
      colour_(terminal_ && std::getenv("NO_COLOR") == nullptr) {}

void Progress::show(const train::StepRecord& record) {
  seconds_ += record.step_s;
  if (terminal_) {
    draw(record);
    if (record.validation_loss) say(train::to_line(record));
    return;
  }
  const bool due = record.step == first_step_ || record.step == last_step_ ||
                   record.step % log_freq_ == 0 || record.validation_loss;
  if (!due) return;
  fmt::print("{}\n", train::to_line(record));
  std::fflush(stdout);
}

void Progress::draw(const train::StepRecord& record) {
  constexpr int kWidth = 28;
  const int64_t done = record.step - first_step_ + 1;
  const int64_t total = last_step_ - first_step_ + 1;
  const auto filled = static_cast<int>(kWidth * done / total);
  std::string bar;
  for (int i = 0; i < kWidth; ++i) bar += i < filled ? "━" : " ";
  const double left = seconds_ / static_cast<double>(done) * static_cast<double>(total - done);
  const char* green = colour_ ? "\x1b[32m" : "";
  const char* plain = colour_ ? "\x1b[0m" : "";
  fmt::print("\r\x1b[K{}{}{} {}/{}  loss {:.4f}  {:.0f} tokens/s  {}:{:02} left", green, bar, plain,
             record.step, last_step_, record.loss, record.tokens_per_s,
             static_cast<int64_t>(left) / 60, static_cast<int64_t>(left) % 60);
  std::fflush(stdout);
  drawn_ = true;
}

void Progress::say(const std::string& text) {
  if (drawn_) fmt::print("\r\x1b[K");
  fmt::print("{}\n", text);
  std::fflush(stdout);
}

void Progress::finish() {
  if (drawn_) fmt::print("\n");
  drawn_ = false;
}

}  // namespace tessera::cli
