#pragma once

// Activations are born in forward order and die in backward order: a stack. An arena is that stack.
// Its memory stays with it from step to step, so no page is faulted twice, and its high-water mark
// is exact, so that what `account` predicts can be held against it.

#include <cstdint>
#include <vector>

#include "core/memory.h"

namespace tessera::core {

/// A stack of views for one rank, used by one thread. Views borrow from the arena and are not
/// zeroed. Allocation grows the arena when it must; it never moves what was handed out.
class Arena {
 public:
  /// Every allocation is rounded up to this, which is also its alignment.
  static constexpr int64_t kAlignment = 64;

  /// `expected_bytes`: size of the first chunk, so that a right expectation means one chunk.
  Arena(MemoryLedger& ledger, Category category, int64_t expected_bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  /// An uninitialised tensor, alive until the scope around it ends.
  View allocate(DType dtype, Shape shape);

  /// Live bytes, rounding included.
  int64_t used() const { return used_; }

  /// A point of the stack to release back to, for lifetimes that no C++ scope spans.
  struct Mark {
    size_t chunk;
    int64_t offset;
    int64_t used;
  };
  Mark mark() const { return {chunk_, offset_, used_}; }
  /// Frees everything allocated since `mark`.
  void release(const Mark& mark);

  /// What is allocated inside a scope dies with it. Scopes nest.
  class Scope {
   public:
    explicit Scope(Arena& arena) : arena_(arena), mark_(arena.mark()) {}
    ~Scope() { arena_.release(mark_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    Mark mark_;
  };

 private:
  struct Chunk {
    void* data;
    int64_t bytes;
  };
  void add_chunk(int64_t bytes);

  MemoryLedger& ledger_;
  Category category_;
  std::vector<Chunk> chunks_;
  size_t chunk_ = 0;    // the chunk being filled
  int64_t offset_ = 0;  // bytes used in it
  int64_t used_ = 0;    // live bytes over all chunks
};

}  // namespace tessera::core
