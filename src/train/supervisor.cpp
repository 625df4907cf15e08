#include "train/supervisor.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <random>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "train/cores.h"
#include "train/environment.h"

namespace tessera::train {
namespace {

using core::ConfigError;

constexpr int kMaxRanks = 1024;

void check(const LaunchOptions& options) {
  const RankRange& ranks = options.ranks;
  if (ranks.min < 1 || ranks.max > kMaxRanks || ranks.min > ranks.max) {
    throw ConfigError(fmt::format(
        "cannot launch {}:{} ranks: MIN and MAX are from 1 to {}, and MIN is not above MAX",
        ranks.min, ranks.max, kMaxRanks));
  }
  if (options.max_restarts < 0) {
    throw ConfigError(
        fmt::format("max-restarts is {}: it counts restarts, from 0 on", options.max_restarts));
  }
  if (options.command.empty()) throw ConfigError("there is no command to launch");
}

/// A name no other launch has, on this host or on one that shares its files.
std::string random_name() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}", random(), random());
}

/// A TCP port of 127.0.0.1 that nobody listens on. Ranks of one host meet in shared memory, and the
/// port only completes torchrun's environment: where the loopback is down, torchrun's own will do.
int free_port() {
  constexpr int kTorchrunPort = 29500;
  const int socket_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket_fd < 0) return kTorchrunPort;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const bool bound =
      bind(socket_fd, generic, length) == 0 && getsockname(socket_fd, generic, &length) == 0;
  close(socket_fd);
  return bound ? ntohs(address.sin_port) : kTorchrunPort;
}

/// One start among several.
struct Start {
  std::string launch_id;
  int world_size;
  int restart_count;
  int port;
  std::optional<int> num_threads;  // nothing: the user's OMP_NUM_THREADS stands
};

using Variable = std::pair<std::string, std::string>;

std::vector<Variable> rank_variables(const LaunchOptions& options, const Start& start, int rank) {
  const std::string rank_text = std::to_string(rank);
  const std::string size_text = std::to_string(start.world_size);
  std::vector<Variable> variables{
      {"RANK", rank_text},
      {"LOCAL_RANK", rank_text},
      {"WORLD_SIZE", size_text},
      {"LOCAL_WORLD_SIZE", size_text},
      {"GROUP_RANK", "0"},
      {"MASTER_ADDR", "127.0.0.1"},
      {"MASTER_PORT", std::to_string(start.port)},
      {"TORCHELASTIC_RESTART_COUNT", std::to_string(start.restart_count)},
      {"TORCHELASTIC_MAX_RESTARTS", std::to_string(options.max_restarts)},
      {"TORCHELASTIC_RUN_ID", start.launch_id},
      {"TESSERA_LAUNCH_ID", start.launch_id},
  };
  if (start.num_threads) {
    variables.emplace_back("OMP_NUM_THREADS", std::to_string(*start.num_threads));
  }
  if (start.restart_count > 0) variables.emplace_back("TESSERA_RESTART", "1");
  return variables;
}

/// This process's environment with `variables` in place of its own of the same names.
std::vector<std::string> environment_with(const std::vector<Variable>& variables) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    const bool replaced = std::any_of(variables.begin(), variables.end(),
                                      [&](const Variable& v) { return v.first == name; });
    if (!replaced) result.emplace_back(text);
  }
  for (const auto& [name, value] : variables) result.push_back(name + "=" + value);
  return result;
}

/// The threads a rank gets where the user has not said how many; and the line that tells.
std::optional<int> share_cores(const LaunchOptions& options, int world_size,
                               const LaunchReport& report) {
  const int cores = options.cores > 0 ? options.cores : usable_cores();
  const std::optional<int> requested =
      requested_threads([](const char* name) { return std::getenv(name); });
  const int threads = requested.value_or(std::max(1, cores / world_size));
  std::string line =
      fmt::format("starting {} {} × {} {}{} on {} {}", world_size,
                  world_size == 1 ? "rank" : "ranks", threads, threads == 1 ? "thread" : "threads",
                  requested ? " (OMP_NUM_THREADS)" : "", cores, cores == 1 ? "core" : "cores");
  if (world_size * threads > cores) line += ", which they share: expect it to be slower";
  report(line);
  return requested ? std::nullopt : std::optional<int>(threads);
}

WorldEnd run_start(const LaunchOptions& options, const Start& start, StopSignals& signals,
                   const LaunchReport& report) {
  std::vector<std::vector<std::string>> environments;
  for (int rank = 0; rank < start.world_size; ++rank) {
    environments.push_back(environment_with(rank_variables(options, start, rank)));
  }
  return run_world(options.command, environments, options.graces, signals, report);
}

/// What the launcher exits with if this is the end.
int exit_status(const WorldEnd& end) {
  if (end.interrupted_by != 0) return 128 + end.interrupted_by;
  if (!end.first_failure) return 0;
  const ProcessEnd& first = end.ends[*end.first_failure].end;
  return first.signal != 0 ? 1 : first.exit_code;
}

/// A status that says the command itself is wrong: usage, too large for memory, verify's mismatch.
bool would_come_back(int status) {
  return status >= 2 && status <= 4;
}

}  // namespace

RankRange parse_rank_range(const std::string& text, int cores) {
  if (text == "auto" || text == "cpu") {
    const int ranks = std::clamp(cores, 1, kMaxRanks);
    return {ranks, ranks};
  }
  auto count = [&](std::string_view digits) {
    int number = 0;
    const char* end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, number);
    if (error != std::errc() || stop != end || number < 1 || number > kMaxRanks) {
      throw ConfigError(
          fmt::format("nproc-per-node is \"{}\": give a number of ranks from 1 to {}, "
                      "MIN:MAX, or auto (one for each of {} cores)",
                      text, kMaxRanks, cores));
    }
    return number;
  };
  const size_t colon = text.find(':');
  if (colon == std::string::npos) {
    const int ranks = count(text);
    return {ranks, ranks};
  }
  const RankRange range{count(std::string_view(text).substr(0, colon)),
                        count(std::string_view(text).substr(colon + 1))};
  if (range.min > range.max) {
    throw ConfigError(
        fmt::format("nproc-per-node is \"{}\", but MIN is above MAX; did you mean {}:{}?", text,
                    range.max, range.min));
  }
  return range;
}

LaunchOutcome launch(const LaunchOptions& options, const LaunchReport& report) {
  check(options);
  StopSignals signals;
  Start start{random_name(), options.ranks.max, 0, 0, std::nullopt};
  for (;; ++start.restart_count) {
    start.port = free_port();
    start.num_threads = share_cores(options, start.world_size, report);
    const WorldEnd end = run_start(options, start, signals, report);
    const LaunchOutcome outcome{exit_status(end), start.restart_count, start.world_size};
    if (!end.first_failure) return outcome;
    report(describe_failure(end.ends, *end.first_failure));
    if (end.interrupted_by != 0 || start.restart_count == options.max_restarts) return outcome;
    if (would_come_back(outcome.exit_status)) {
      report(fmt::format("not restarted: exit status {} would come back", outcome.exit_status));
      return outcome;
    }
    const int lost = count_lost(end.ends, *end.first_failure);
    start.world_size = std::max(options.ranks.min, start.world_size - lost);
    report(fmt::format("restart {} of {}", start.restart_count + 1, options.max_restarts));
  }
}

}  // namespace tessera::train
