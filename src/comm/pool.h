#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "comm/board.h"
#include "comm/handshake.h"

// More memory for ranks that have met already: where the boards of groups lie that are split off.

namespace tessera::comm {

/// Memory that all ranks of a world can reach. Any rank adds a part; where it lies is a number that
/// means the same to all of them. Used by several threads at once.
class Pool {
 public:
  virtual ~Pool() = default;
  /// Adds zeroed memory for that many ranks. Throws CommError that says what is needed and what is
  /// free.
  virtual int64_t add(int64_t bytes, int ranks) = 0;
  /// The part that somebody added. Throws CommError.
  virtual std::shared_ptr<Region> map(int64_t where, int64_t bytes) = 0;
  /// Gives the part's memory back, once nobody needs what is in it.
  virtual void remove(int64_t where, int64_t bytes) = 0;
};

/// For threads: memory of this process, known by its number in a list.
class ThreadPool final : public Pool {
 public:
  int64_t add(int64_t bytes, int ranks) override;
  std::shared_ptr<Region> map(int64_t where, int64_t bytes) override;
  void remove(int64_t where, int64_t bytes) override;

 private:
  std::mutex mutex_;
  std::vector<std::shared_ptr<Region>> regions_;
};

/// For processes: the world's own file, which grows behind its board.
class FilePool final : public Pool {
 public:
  /// Owns the descriptor; `board` is the world's, at the beginning of the file.
  FilePool(Descriptor file, Board board) : file_(std::move(file)), board_(std::move(board)) {}
  int64_t add(int64_t bytes, int ranks) override;
  std::shared_ptr<Region> map(int64_t where, int64_t bytes) override;
  void remove(int64_t where, int64_t bytes) override;

 private:
  Descriptor file_;
  Board board_;
};

/// Takes all pages of a part of a file at once, so that shortage is an error here and not a SIGBUS
/// later. Throws CommError that says what is needed, for how many ranks, and what is free.
void take_pages(int fd, int64_t offset, int64_t bytes, int ranks);
/// That error, for the reason `error` (an errno).
[[noreturn]] void fail_for_memory(int64_t bytes, int ranks, int error);

}  // namespace tessera::comm
