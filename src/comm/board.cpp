#include "comm/board.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "core/error.h"

namespace tessera::comm {

namespace {

constexpr int64_t kPage = 4096;
// A rank's boxes of one parity, all together. What is in flight should stay in the caches beside
// the caller's own data, and a turn should outweigh its synchronisation. Measured with 1 MiB of
// cache a core and 2 ranks: 1 MiB and up are best, and half of it is up to 15 % slower.
constexpr int64_t kMostBoxBytes = int64_t{1} << 20;
constexpr int64_t kMostCellBytes = int64_t{64} << 10;
constexpr int64_t kLine = 64;

int64_t round_up(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}
int64_t round_down(int64_t value, int64_t to) {
  return value / to * to;
}

std::shared_ptr<Region> map(int64_t bytes, int flags, int fd, int64_t offset) {
  void* data = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_POPULATE | flags, fd, offset);
  if (data == MAP_FAILED) {
    throw core::CommError(fmt::format("cannot map {} bytes of memory shared by the ranks: {}",
                                      bytes, std::strerror(errno)));
  }
  return std::make_shared<Region>(data, bytes);
}

}  // namespace

std::shared_ptr<Region> Region::anonymous(int64_t bytes) {
  return map(bytes, MAP_ANONYMOUS, -1, 0);
}
std::shared_ptr<Region> Region::of_file(int fd, int64_t offset, int64_t bytes) {
  return map(bytes, 0, fd, offset);
}
Region::~Region() {
  munmap(data_, static_cast<size_t>(bytes_));
}

// After the counters, half of the memory at most is for collectives and half for messages; neither
// takes more than it has use for.
BoardLayout BoardLayout::of(int size, int64_t staging_bytes) {
  const int64_t ranks = size;
  BoardLayout layout;
  layout.size = size;
  layout.seats = BoardLayout::kSeats;
  layout.channels = layout.seats + round_up(ranks * int64_t{sizeof(Seat)}, kPage);
  layout.boxes = layout.channels + round_up(ranks * ranks * int64_t{sizeof(Channel)}, kPage);
  const int64_t half = std::max<int64_t>(0, (staging_bytes - layout.boxes - 2 * kPage) / 2);

  layout.piece_bytes =
      round_down(std::min(half / (2 * ranks * ranks), kMostBoxBytes / ranks), kLine);
  layout.cells = layout.boxes + round_up(2 * ranks * ranks * layout.piece_bytes, kPage);
  const int64_t num_cells = ranks * (ranks - 1) * kCells;
  const int64_t cell = std::min(half / num_cells, kMostCellBytes + kLine);
  layout.cell_bytes = round_down(cell, kLine) - int64_t{sizeof(Cell)};
  layout.total_bytes =
      layout.cells + round_up(num_cells * (layout.cell_bytes + int64_t{sizeof(Cell)}), kPage);

  if (layout.piece_bytes < kLine || layout.cell_bytes < kLine) {
    throw core::ConfigError(fmt::format(
        "{} bytes of shared memory are too few for {} ranks on one host; at least {} "
        "are needed",
        staging_bytes, size, layout.boxes + 2 * kPage + 2 * ranks * ranks * 2 * kCells * kLine));
  }
  return layout;
}

void Board::wake_all() const {
  for (int rank = 0; rank < size(); ++rank) {
    wake(seat(rank).progress);
    for (int to = 0; to < size(); ++to) {
      Channel& pair = channel(rank, to);
      if (pair.filled.sleepers.load() != 0) wake(pair.filled);
      if (pair.drained.sleepers.load() != 0) wake(pair.drained);
    }
  }
}

bool Board::stop(Notice::Origin origin, int rank, const std::string& why) const {
  Notice& posted = notice();
  if (posted.raised.exchange(true)) return false;
  posted.origin = origin;
  posted.rank = world_rank(rank);
  const size_t length = std::min(why.size(), Notice::kTextBytes - 1);
  std::memcpy(posted.text, why.data(), length);
  posted.text[length] = '\0';
  posted.written.store(true, std::memory_order_seq_cst);
  wake_all();
  return true;
}

std::string Board::notice_text(const std::string& activity) const {
  // Whoever is writing takes a microsecond, unless it was killed right there: do not wait for ever.
  constexpr int kPatience = 1000;
  for (int i = 0; i < kPatience && !notice().written.load(); ++i) std::this_thread::yield();
  if (!notice().written.load()) return activity + ": a rank died while it was failing";
  if (notice().origin == Notice::Origin::failure) return notice().text;
  return fmt::format("{}: rank {} stopped: {}", activity, notice().rank, notice().text);
}

std::string Board::describe(Operation operation, int64_t step) const {
  if (has_root(operation.kind) || is_message(operation.kind)) {
    operation.peer = world_rank(operation.peer);
  }
  const std::string text = comm::describe(operation, step);
  if (!group_ && !called_) return text;
  Group named{group_ ? group_->name : called_->name, {}};
  for (int rank = 0; rank < size(); ++rank) named.ranks.push_back(world_rank(rank));
  return text + " in " + comm::name_of(named);
}

std::string Board::name_of(Operation operation) const {
  if (is_message(operation.kind)) operation.peer = world_rank(operation.peer);
  return comm::name_of(operation);
}

}  // namespace tessera::comm
