#include "comm/ranks.h"

#include "comm/ranks_mpi.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

namespace tessera::comm_test {

namespace {

Outcome end_of(const std::function<std::string()>& body) {
  Outcome outcome;
  try {
    outcome.report = body();
  } catch (const std::exception& error) {
    outcome.error = error.what();
  }
  return outcome;
}

std::vector<Outcome> run_threads(int size, const Body& body, const comm::CommOptions& options) {
  auto communicators = comm::make_thread_communicators(size, options);
  std::vector<Outcome> outcomes(static_cast<size_t>(size));
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    threads.emplace_back([&, rank] {
      const auto mine = std::move(communicators[rank]);
      outcomes[rank] = end_of([&] { return body(*mine); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

struct Child {
  pid_t pid = 0;
  int pipe = -1;
  std::string text;
  bool open = true;
};

// The report, a zero byte, the error.
void write_outcome(int pipe, const Outcome& outcome) {
  const std::string text = outcome.report + '\0' + outcome.error;
  size_t written = 0;
  while (written < text.size()) {
    const ssize_t length = write(pipe, text.data() + written, text.size() - written);
    if (length <= 0) return;
    written += static_cast<size_t>(length);
  }
}

Child start(int rank, const std::function<std::string(int)>& body) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    write_outcome(ends[1], end_of([&] { return body(rank); }));
    _exit(0);
  }
  close(ends[1]);
  return {pid, ends[0], "", true};
}

// Reads what a child has to say; false at its end.
bool read_from(Child& child) {
  char buffer[4096];
  const ssize_t length = read(child.pipe, buffer, sizeof(buffer));
  if (length > 0) child.text.append(buffer, static_cast<size_t>(length));
  return length > 0;
}

Outcome outcome_of(const Child& child) {
  Outcome outcome;
  int status = 0;
  waitpid(child.pid, &status, 0);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  const size_t split = child.text.find('\0');
  if (split != std::string::npos) {
    outcome.report = child.text.substr(0, split);
    outcome.error = child.text.substr(split + 1);
  } else if (outcome.signal == 0) {
    outcome.error = "ended without a word";
  }
  return outcome;
}

}  // namespace

std::vector<Outcome> run_processes(int size, const std::function<std::string(int)>& body,
                                   int stops) {
  std::vector<Child> children;
  for (int rank = 0; rank < size; ++rank) children.push_back(start(rank, body));
  int running = size;
  while (running > 0) {
    if (running == 1 && stops >= 0 && children[static_cast<size_t>(stops)].open) {
      kill(children[static_cast<size_t>(stops)].pid, SIGKILL);
    }
    std::vector<pollfd> news;
    for (const Child& child : children) news.push_back({child.open ? child.pipe : -1, POLLIN, 0});
    constexpr int kPatienceMs = 60'000;
    if (poll(news.data(), news.size(), kPatienceMs) <= 0) {
      for (const Child& child : children) kill(child.pid, SIGKILL);
    }
    for (size_t i = 0; i < news.size(); ++i) {
      if (news[i].revents == 0 || read_from(children[i])) continue;
      children[i].open = false;
      --running;
    }
  }
  std::vector<Outcome> outcomes;
  for (const Child& child : children) {
    close(child.pipe);
    outcomes.push_back(outcome_of(child));
  }
  return outcomes;
}

std::vector<Outcome> run_ranks(Backend backend, int size, const Body& body,
                               const RunOptions& options) {
  if (backend == Backend::mpi) return run_mpi_ranks(size, body, options.comm);
  if (backend == Backend::thread) return run_threads(size, body, options.comm);
  const std::string rendezvous = fresh_rendezvous();
  const auto rank_body = [&](int rank) {
    return body(*comm::make_shm_communicator(rank, size, rendezvous, options.comm));
  };
  return run_processes(size, rank_body, options.stops);
}

std::vector<Backend> backends() {
  if (num_mpi_ranks() > 0) return {Backend::mpi};
  return {Backend::thread, Backend::shm};
}

std::vector<int> possible_sizes(const std::vector<int>& wanted) {
  if (num_mpi_ranks() == 0) return wanted;
  std::vector<int> sizes;
  for (const int size : wanted) {
    if (size <= num_mpi_ranks()) sizes.push_back(size);
  }
  return sizes;
}

void* map_shared(size_t bytes) {
  if (num_mpi_ranks() > 0) return map_mpi_shared(bytes);
  return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
}

void expect_all_well(const std::vector<Outcome>& outcomes) {
  for (size_t rank = 0; rank < outcomes.size(); ++rank) {
    EXPECT_EQ(outcomes[rank].report, "") << "rank " << rank;
    EXPECT_EQ(outcomes[rank].error, "") << "rank " << rank;
    EXPECT_EQ(outcomes[rank].signal, 0) << "rank " << rank;
  }
}

std::string fresh_rendezvous() {
  static int count = 0;
  return "test-" + std::to_string(getpid()) + "-" + std::to_string(count++);
}

}  // namespace tessera::comm_test
