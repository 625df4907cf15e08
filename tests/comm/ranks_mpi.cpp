#include "comm/ranks_mpi.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

#include "comm/mpi/engine.h"
#include "comm/values.h"

namespace tessera::comm_test {

namespace {

using comm::Communicator;

constexpr std::chrono::milliseconds kPatience{60'000};

/// The copies, and a world of their own in which they tell each other how a test went.
class Copies {
 public:
  static Copies& get() {
    static Copies copies;
    return copies;
  }

  comm::MpiRanks ranks(int size, int number) const {
    comm::MpiRanks ranks{world_, {}, number};
    for (int i = 0; i < size; ++i) ranks.processes.push_back(i);
    return ranks;
  }
  int rank() const { return world_->rank(); }
  // A test may split this often.
  int next_number() { return number_ += 100; }
  Communicator& all() const { return *all_; }

  void leave() {
    all_->barrier();
    all_.reset();
    EXPECT_TRUE(world_->leave(kPatience));
    world_.reset();
  }

 private:
  Copies() : world_(comm::MpiWorld::join()) {
    comm::CommOptions options;
    options.timeout = kPatience;
    all_ = std::make_unique<Communicator>(
        comm::make_mpi_engine(ranks(world_->size(), next_number()), options));
  }

  std::shared_ptr<comm::MpiWorld> world_;
  std::unique_ptr<Communicator> all_;
  int number_ = 0;
};

class Farewell : public testing::Environment {
  void TearDown() override {
    if (num_mpi_ranks() > 0) Copies::get().leave();
  }
};
const testing::Environment* const farewell = testing::AddGlobalTestEnvironment(new Farewell);

Outcome end_of(const std::function<std::string()>& body) {
  Outcome outcome;
  try {
    outcome.report = body();
  } catch (const std::exception& error) {
    outcome.error = error.what();
  }
  return outcome;
}

/// The text of each copy, on all of them.
std::vector<std::string> exchange_texts(Communicator& all, const std::string& mine) {
  std::vector<int64_t> lengths(static_cast<size_t>(all.size()));
  const std::vector<int64_t> own{static_cast<int64_t>(mine.size())};
  all.all_gather(view_of(lengths), view_of(own));
  std::vector<std::string> texts;
  for (int rank = 0; rank < all.size(); ++rank) {
    std::vector<uint8_t> bytes(mine.begin(), mine.end());
    bytes.resize(static_cast<size_t>(lengths[static_cast<size_t>(rank)]));
    all.broadcast(view_of(bytes), rank);
    texts.emplace_back(bytes.begin(), bytes.end());
  }
  return texts;
}

}  // namespace

int num_mpi_ranks() {
  const char* size = std::getenv("OMPI_COMM_WORLD_SIZE");
  return size == nullptr ? 0 : std::atoi(size);
}

std::string mpi_job() {
  const char* job = std::getenv("PMIX_NAMESPACE");
  std::string name = job == nullptr ? "job" : job;
  for (char& c : name) c = c == '/' ? '_' : c;
  return name;
}

std::vector<Outcome> run_mpi_copies(int size, const CopyBody& body) {
  std::vector<Outcome> outcomes(static_cast<size_t>(size));
  if (size > num_mpi_ranks()) {
    ADD_FAILURE() << "a test of " << size << " ranks, of which mpirun has started "
                  << num_mpi_ranks() << ": use mpirun -n 4, or more";
    return outcomes;
  }
  Copies& copies = Copies::get();
  const comm::MpiRanks ranks = copies.ranks(size, copies.next_number());
  Outcome mine;
  if (copies.rank() < size) mine = end_of([&] { return body(ranks); });
  const auto reports = exchange_texts(copies.all(), mine.report);
  const auto errors = exchange_texts(copies.all(), mine.error);
  for (size_t i = 0; i < outcomes.size(); ++i) outcomes[i] = {reports[i], errors[i], 0};
  return outcomes;
}

std::vector<Outcome> run_mpi_ranks(int size, const Body& body, const comm::CommOptions& options,
                                   const Wrap& wrap) {
  return run_mpi_copies(size, [&](const comm::MpiRanks& ranks) {
    if (size == 1) return body(*comm::make_self_communicator());
    std::unique_ptr<comm::Engine> engine = comm::make_mpi_engine(ranks, options);
    Communicator comm(wrap ? wrap(std::move(engine)) : std::move(engine));
    return body(comm);
  });
}

void* map_mpi_shared(size_t bytes) {
  static int count = 0;
  const std::string path = "/dev/shm/tessera-test-" + mpi_job() + "-" + std::to_string(count++);
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  EXPECT_EQ(ftruncate(file, static_cast<off_t>(bytes)), 0);
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  Copies::get().all().barrier();  // all have it open
  unlink(path.c_str());
  return pages;
}

}  // namespace tessera::comm_test
