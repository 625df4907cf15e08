#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "comm/counter.h"
#include "comm/group.h"
#include "comm/operation.h"

// The memory that the ranks of a group share, for threads and for processes alike:
//
//   Notice                        why everybody stops, once somebody failed; and how much memory
//                                 the groups have taken that were split off
//   Seat      [size]              a rank's progress, what it does, who it is
//   Channel   [size][size]        counters of the messages from one rank to another
//   boxes     [size][2][size]     pieces of a collective: from a rank, by parity of the turn, to a
//                                 rank; the box from a rank to itself is its bulletin, for all
//   cells     [size][size − 1][kCells]  pieces of messages: from a rank, to another
//
// Plain structures over zeroed memory; the rules of who writes what when are Member's.
//
// A group that was split off has a board of its own, but no notice: that of the world stops all.

namespace tessera::comm {

/// Pages shared by the ranks: anonymous for threads, a memfd for processes. Owns its mapping.
class Region {
 public:
  /// Zeroed memory of this process. Throws CommError when there is none.
  static std::shared_ptr<Region> anonymous(int64_t bytes);
  /// Maps bytes of a file from an offset on; the descriptor may be closed then. Throws CommError.
  static std::shared_ptr<Region> of_file(int fd, int64_t offset, int64_t bytes);
  Region(void* data, int64_t bytes) : data_(data), bytes_(bytes) {}
  ~Region();
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_;
  int64_t bytes_;
};

/// The first failure, told to all.
struct Notice {
  enum class Origin : uint32_t {
    failure,  ///< of the group: the text tells all, and is the same for all ranks
    caller    ///< a rank stopped for a reason of its caller's, which the text is
  };
  static constexpr size_t kTextBytes = 3072;
  alignas(64) std::atomic<bool> raised;  ///< somebody failed: whoever raises it writes the rest
  std::atomic<bool> written;             ///< the rest may be read
  Origin origin;
  int rank;  ///< who stopped
  char text[kTextBytes];
  alignas(64) std::atomic<int64_t> added;  ///< bytes of groups, behind the board in its file
};

/// Something that a rank does or did.
struct Act {
  alignas(64) std::array<std::atomic<uint64_t>, 3> operation;
  std::atomic<uint32_t> moment;     ///< counts what the rank began, so that the later can be told
  std::atomic<uint32_t> under_way;  ///< how many such are not over
};

/// What a rank tells about itself. Only that rank writes here; where ranks are processes, rank 0
/// enters who came, and with that marks it `joined`.
struct Seat {
  enum class State : uint32_t { absent, joined, left };
  static constexpr int kCpuWords = 16;  // as many as cpu_set_t

  // One cache line, so that a peer learns of a turn and of its operation at once.
  alignas(64) Counter progress;                                 ///< turns published
  std::array<std::array<std::atomic<uint64_t>, 3>, 2> entered;  ///< operation, by parity of turn

  // For messages of failure; best effort while the rank is running.
  Act collective;  ///< the last that it began
  Act message;     ///< of those to or from any peer
  std::atomic<int64_t> step;
  std::atomic<State> state;

  // In the world's seat: what the rank has been waiting for for a while, in whichever group.
  // Whoever of its threads sets `tells` writes; empty: nothing.
  static constexpr size_t kWaitBytes = 255;
  std::atomic<bool> tells;
  std::array<std::atomic<char>, kWaitBytes> wait;
  // In the world's seat: in how many operations it is of another transport, across hosts.
  std::atomic<int> away;

  // Written before the state becomes `joined`.
  alignas(64) int64_t pid;
  uint64_t start_time;
  std::array<uint64_t, kCpuWords> cpus;
};
static_assert(sizeof(Counter) + 2 * 3 * 8 <= 64);

/// The messages from one rank to another, in cells.
struct Channel {
  alignas(64) Counter filled;   ///< cells written, by the sender
  alignas(64) Counter drained;  ///< cells read, by the receiver
};

/// A piece of a message, and the message it belongs to; the payload follows.
struct Cell {
  alignas(64) Words operation;
  int64_t step;
};
static_assert(sizeof(Cell) == 64);

/// Where things lie, a pure function of the number of ranks and of the memory they may share.
struct BoardLayout {
  static constexpr uint32_t kCells = 4;
  static constexpr int64_t kSeats = 4096;  // wherever seats of the world lie, the steps lie
  int size = 0;
  int64_t piece_bytes = 0;                                ///< of a box
  int64_t cell_bytes = 0;                                 ///< payload of a cell
  int64_t seats = 0, channels = 0, boxes = 0, cells = 0;  ///< offsets
  int64_t total_bytes = 0;

  /// Throws ConfigError when `staging_bytes` cannot hold that many ranks.
  static BoardLayout of(int size, int64_t staging_bytes);
};

/// A region seen through its layout.
class Board {
 public:
  /// Of the world; or of those of its ranks that `called` names.
  Board(std::shared_ptr<Region> region, const BoardLayout& layout, Callsigns called = nullptr)
      : region_(region), world_(std::move(region)), layout_(layout), called_(std::move(called)) {}
  /// Of a group of ranks that have `parent` in common.
  Board(std::shared_ptr<Region> region, const BoardLayout& layout, const Board& parent, Group group)
      : region_(std::move(region)),
        world_(parent.world_),
        layout_(layout),
        called_(parent.called_),
        group_(std::make_shared<const Group>(std::move(group))) {}

  const BoardLayout& layout() const { return layout_; }
  int size() const { return layout_.size; }
  Notice& notice() const { return *reinterpret_cast<Notice*>(world_->data()); }
  Seat& seat(int rank) const { return at<Seat>(layout_.seats)[rank]; }
  /// The number of a rank of this group at the board it was split off from, or at this one.
  int root_rank(int rank) const { return group_ ? group_->ranks[static_cast<size_t>(rank)] : rank; }
  /// How a rank of this group is called in messages: by its number in the world.
  int world_rank(int rank) const {
    const int root = root_rank(rank);
    return called_ ? called_->ranks[static_cast<size_t>(root)] : root;
  }
  /// The rank's seat in the world.
  Seat& world_seat(int rank) const {
    return reinterpret_cast<Seat*>(world_->data() + BoardLayout::kSeats)[root_rank(rank)];
  }
  /// The training step that a rank has reached.
  std::atomic<int64_t>& step(int rank) const { return world_seat(rank).step; }
  Channel& channel(int from, int to) const {
    return at<Channel>(layout_.channels)[from * size() + to];
  }
  std::byte* box(int from, uint32_t turn, int to) const {
    const int64_t index = (int64_t{from} * 2 + (turn & 1)) * size() + to;
    return at<std::byte>(layout_.boxes) + index * layout_.piece_bytes;
  }
  Cell& cell(int from, int to, uint32_t index) const {
    const int64_t pair = int64_t{from} * (size() - 1) + to - (to > from ? 1 : 0);
    const int64_t number = pair * BoardLayout::kCells + index % BoardLayout::kCells;
    return *at<Cell>(layout_.cells + number * (int64_t{sizeof(Cell)} + layout_.cell_bytes));
  }

  /// Posts the first failure and wakes everybody; false, and nothing, when there is one already.
  bool stop(Notice::Origin origin, int rank, const std::string& why) const;
  /// What was posted, as it is told to somebody busy with `activity`: a failure of the group as it
  /// is, a caller's reason as "activity: rank 1 stopped: why". Call when the notice is raised.
  std::string notice_text(const std::string& activity) const;
  /// "all-reduce #12 (fp32 sum, 4096 bytes) of step 3 in group dp (ranks 0, 2)", ranks by their
  /// numbers in the world; step -1 and the world's name are left out.
  std::string describe(Operation operation, int64_t step) const;
  /// "all-reduce #12", "send #2 to rank 3"
  std::string name_of(Operation operation) const;
  /// Wakes all who wait for anything on this board. Those of other boards look by themselves, soon.
  void wake_all() const;

 private:
  template <class T>
  T* at(int64_t offset) const {
    return reinterpret_cast<T*>(region_->data() + offset);
  }

  std::shared_ptr<Region> region_;
  std::shared_ptr<Region> world_;  // where the world's board lies
  BoardLayout layout_;
  Callsigns called_;
  std::shared_ptr<const Group> group_;  // by root_rank(); null: this is the root
};

}  // namespace tessera::comm
