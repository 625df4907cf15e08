#include "comm/two_level_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "comm/algorithms.h"
#include "comm/arguments.h"
#include "comm/board_engine.h"
#include "comm/partition.h"
#include "core/error.h"

namespace tessera::comm {

namespace {

/// What one call of a level sends.
int64_t run(Engine& level, const Call& call, bool may_spin) {
  Traffic sent;
  level.execute(call, sent, may_spin);
  return sent.total();
}

View elements(std::byte* data, core::DType dtype, int64_t count) {
  return {data, dtype, core::Shape{count}};
}
View part(View whole, int64_t begin, int64_t count) {
  return elements(at(whole, begin), whole.dtype, count);
}

void copy_bytes(std::byte* to, const std::byte* from, int64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, static_cast<size_t>(bytes));
}

// A rank's share of what is worked on at a time, where it has to be rearranged.
constexpr int64_t kMostBlockBytes = int64_t{256} << 10;

bool makes_two_levels(const Hosts& hosts) {
  return hosts.even && hosts.num_hosts > 1 && hosts.local_size > 1;
}

}  // namespace

TwoLevelEngine::TwoLevelEngine(TwoLevels levels, const CommOptions& options)
    : levels_(std::move(levels)), options_(options), rank_at_(static_cast<size_t>(size())) {
  CHECK(makes_two_levels(levels_.hosts), "two levels have several hosts of several ranks");
  for (int rank = 0; rank < size(); ++rank) {
    const auto at = static_cast<size_t>(rank);
    const int host = levels_.hosts.host_of[at];
    const int local = levels_.hosts.local_rank_of[at];
    rank_at_[static_cast<size_t>(host * levels_.hosts.local_size + local)] = rank;
  }
  const int64_t share = options.staging_bytes / size() / size() / 64 * 64;
  const int64_t block = std::clamp<int64_t>(share, 64, kMostBlockBytes);
  mixed_.resize(static_cast<size_t>(block * size()));
  column_.resize(static_cast<size_t>(block * levels_.hosts.num_hosts));
}

int64_t TwoLevelEngine::block_elements(core::DType dtype) const {
  return static_cast<int64_t>(mixed_.size()) / size() / core::size_of(dtype);
}

int64_t TwoLevelEngine::memory_bytes() const {
  const int64_t across = levels_.across->memory_bytes();
  return levels_.all->memory_bytes() + levels_.local->memory_bytes() + across +
         static_cast<int64_t>(mixed_.size() + column_.size());
}

int64_t TwoLevelEngine::bytes_across_hosts() const {
  return levels_.all->bytes_across_hosts() + levels_.across->bytes_across_hosts();
}

void TwoLevelEngine::interrupt() {
  interrupted_.store(true);
  levels_.all->interrupt();
  levels_.local->interrupt();
  levels_.across->interrupt();
}

void TwoLevelEngine::set_step(int64_t step) {
  step_.store(step, std::memory_order_relaxed);
  levels_.all->set_step(step);
  levels_.local->set_step(step);
}

void TwoLevelEngine::abort(const std::string& why) {
  levels_.all->abort(why);
  levels_.local->abort(why);
}

// A failure of one level is told on the other: each knows only of its own ranks. That this rank
// gives up is no failure of the world's. The levels name their own operations: before these goes
// the one that they are parts of.
void TwoLevelEngine::execute(const Call& call, Traffic& traffic, bool may_spin) {
  const bool collective = !is_message(call.kind);
  if (collective) ++sequence_;
  try {
    carry_out(call, traffic, may_spin);
  } catch (const core::CommError& error) {
    if (!interrupted_.load()) abort(error.what());
    if (!collective) throw;
    throw core::CommError(name_of(call) + ": " + error.what());
  }
}

std::string TwoLevelEngine::name_of(const Call& call) const {
  Operation operation;
  operation.kind = call.kind;
  operation.sequence = sequence_;
  const int64_t step = step_.load(std::memory_order_relaxed);
  return comm::name_of(operation) + (step < 0 ? "" : fmt::format(" of step {}", step));
}

int64_t TwoLevelEngine::run_on_host(const Call& call, bool may_spin) {
  return run(*levels_.local, call, may_spin);
}

void TwoLevelEngine::execute_away(Engine& level, const Call& call, Traffic& traffic,
                                  bool may_spin) {
  levels_.local->set_away(1);
  try {
    level.execute(call, traffic, may_spin);
  } catch (const core::CommError& error) {
    if (!interrupted_.load()) levels_.local->abort(error.what());  // while they still see why
    levels_.local->set_away(-1);
    throw;
  }
  levels_.local->set_away(-1);
}

int64_t TwoLevelEngine::run_away(Engine& level, const Call& call, bool may_spin) {
  Traffic sent;
  execute_away(level, call, sent, may_spin);
  return sent.total();
}

void TwoLevelEngine::carry_out(const Call& call, Traffic& traffic, bool may_spin) {
  switch (call.kind) {
    case OperationKind::all_reduce:
      traffic.all_reduce += all_reduce(call.out, call.op, may_spin);
      return;
    case OperationKind::reduce_scatter:
      traffic.reduce_scatter += reduce_scatter(call.out, call.in, call.op, may_spin);
      return;
    case OperationKind::all_gather:
      traffic.all_gather += all_gather(call.out, call.in, may_spin);
      return;
    case OperationKind::broadcast:
      traffic.broadcast += broadcast(call.out, call.peer, may_spin);
      return;
    case OperationKind::barrier:
      return barrier(may_spin);
    case OperationKind::send:
    case OperationKind::recv:
      return message(call, traffic, may_spin);
    default:
      return execute_away(*levels_.all, call, traffic, may_spin);
  }
}

// The host's sums of a chunk each, the sums of these chunks over the hosts, and the host's chunks
// put together, all in place. What does not divide by the ranks, some few elements, goes in one
// level: so each rank sends in all what it would in one level.
int64_t TwoLevelEngine::all_reduce(View inout, ReduceOp op, bool may_spin) {
  const int locals = levels_.hosts.local_size;
  const int64_t chunk = inout.elements() / size() * levels_.hosts.num_hosts;
  const View whole = part(inout, 0, chunk * locals);
  const View mine = part(inout, chunk * levels_.hosts.local_rank, chunk);
  int64_t sent = run_on_host(Call::reduce_scatter(mine, whole, op), may_spin);
  sent += run_away(*levels_.across, Call::all_reduce(mine, op), may_spin);
  sent += run_on_host(Call::all_gather(whole, mine), may_spin);
  const View rest = part(inout, chunk * locals, inout.elements() - chunk * locals);
  if (rest.elements() > 0) sent += run_away(*levels_.all, Call::all_reduce(rest, op), may_spin);
  return sent;
}

// By blocks: of every host the shares of its ranks are summed inside this one, which leaves rank l
// the shares of all ranks l; these are summed across.
int64_t TwoLevelEngine::reduce_scatter(View out, ConstView in, ReduceOp op, bool may_spin) {
  const Hosts& hosts = levels_.hosts;
  const int64_t width = core::size_of(in.dtype);
  const int64_t block = block_elements(in.dtype);
  const Range whole{0, out.elements()};
  int64_t sent = 0;
  for (int64_t k = 0; k == 0 || k < num_pieces(whole.count, block); ++k) {
    const Range range = piece_of(whole, block, k);
    for (int host = 0; host < hosts.num_hosts; ++host) {
      for (int local = 0; local < hosts.local_size; ++local) {
        copy_bytes(mixed_.data() + local * range.count * width,
                   at(in, rank_at(host, local) * whole.count + range.begin), range.count * width);
      }
      const View shares = elements(mixed_.data(), in.dtype, hosts.local_size * range.count);
      const View sum = elements(column_.data() + host * range.count * width, in.dtype, range.count);
      sent += run_on_host(Call::reduce_scatter(sum, shares, op), may_spin);
    }
    const View column = elements(column_.data(), in.dtype, hosts.num_hosts * range.count);
    sent +=
        run_away(*levels_.across,
                 Call::reduce_scatter(part(out, range.begin, range.count), column, op), may_spin);
  }
  return sent;
}

// By blocks: the shares of all ranks l come across to rank l of each host, once to each host; then
// the ranks of the host put together what they have.
int64_t TwoLevelEngine::all_gather(View out, ConstView in, bool may_spin) {
  const Hosts& hosts = levels_.hosts;
  const int64_t width = core::size_of(in.dtype);
  const int64_t block = block_elements(in.dtype);
  const Range whole{0, in.elements()};
  int64_t sent = 0;
  for (int64_t k = 0; k == 0 || k < num_pieces(whole.count, block); ++k) {
    const Range range = piece_of(whole, block, k);
    const View column = elements(column_.data(), in.dtype, hosts.num_hosts * range.count);
    const ConstView mine{at(in, range.begin), in.dtype, core::Shape{range.count}};
    sent += run_away(*levels_.across, Call::all_gather(column, mine), may_spin);
    const View mixed = elements(mixed_.data(), in.dtype, size() * range.count);
    sent += run_on_host(Call::all_gather(mixed, column), may_spin);
    for (int local = 0; local < hosts.local_size; ++local) {
      for (int host = 0; host < hosts.num_hosts; ++host) {
        copy_bytes(at(out, rank_at(host, local) * whole.count + range.begin),
                   mixed_.data() + (local * hosts.num_hosts + host) * range.count * width,
                   range.count * width);
      }
    }
  }
  return sent;
}

// From the root to the ranks of its own number on each host, and on from these.
int64_t TwoLevelEngine::broadcast(View inout, int root, bool may_spin) {
  const auto at = static_cast<size_t>(root);
  const int from = levels_.hosts.local_rank_of[at];
  int64_t sent = 0;
  if (levels_.hosts.local_rank == from) {
    sent += run_away(*levels_.across, Call::broadcast(inout, levels_.hosts.host_of[at]), may_spin);
  }
  return sent + run_on_host(Call::broadcast(inout, from), may_spin);
}

// A rank that comes back from the second has heard of every host that all its ranks had come.
void TwoLevelEngine::barrier(bool may_spin) {
  run_on_host(Call::barrier(), may_spin);
  run_away(*levels_.across, Call::barrier(), may_spin);
}

void TwoLevelEngine::message(const Call& call, Traffic& traffic, bool may_spin) {
  const Hosts& hosts = levels_.hosts;
  const auto peer = static_cast<size_t>(call.peer);
  if (hosts.host_of[peer] != hosts.host_of[static_cast<size_t>(rank())]) {
    return execute_away(*levels_.all, call, traffic, may_spin);
  }
  Call here = call;
  here.peer = hosts.local_rank_of[peer];
  levels_.local->execute(here, traffic, may_spin);
}

namespace {

/// Where the ranks of a group are, by where those of its world are; and who takes part with whom.
Hosts hosts_of_group(const Hosts& world, const std::vector<int>& members, int me) {
  Hosts hosts = world;
  hosts.host_of.clear();
  hosts.local_rank_of.clear();
  std::vector<int> number(static_cast<size_t>(world.num_hosts), -1);
  std::vector<int> ranks_on;
  for (const int member : members) {
    int& host = number[static_cast<size_t>(world.host_of[static_cast<size_t>(member)])];
    if (host < 0) {
      host = static_cast<int>(ranks_on.size());
      ranks_on.push_back(0);
    }
    hosts.host_of.push_back(host);
    hosts.local_rank_of.push_back(ranks_on[static_cast<size_t>(host)]++);
  }
  hosts.num_hosts = static_cast<int>(ranks_on.size());
  hosts.even = std::all_of(ranks_on.begin(), ranks_on.end(),
                           [&](int ranks) { return ranks == ranks_on[0]; });
  hosts.local_rank = hosts.local_rank_of[static_cast<size_t>(me)];
  hosts.local_size = ranks_on[static_cast<size_t>(hosts.host_of[static_cast<size_t>(me)])];
  return hosts;
}

}  // namespace

// Every level is split. A group inside one host, or with one rank on each, needs only one of them.
std::unique_ptr<Engine> TwoLevelEngine::split(int color, const std::string& name) {
  ++sequence_;
  std::vector<int32_t> colors(static_cast<size_t>(size()));
  const auto view = [](int32_t* data, int64_t count) {
    return View{data, core::DType::i32, core::Shape{count}};
  };
  run_away(*levels_.all, Call::all_gather(view(colors.data(), size()), view(&color, 1)), true);
  std::vector<int> members;
  for (int rank = 0; rank < size(); ++rank) {
    if (colors[static_cast<size_t>(rank)] == color) members.push_back(rank);
  }
  const auto me = std::find(members.begin(), members.end(), rank()) - members.begin();
  TwoLevels group;
  group.hosts = hosts_of_group(levels_.hosts, members, static_cast<int>(me));
  group.all = levels_.all->split(color, name);
  group.local = levels_.local->split(color, name);
  if (!group.all) return nullptr;
  if (group.hosts.num_hosts == 1) return std::move(group.local);
  if (!makes_two_levels(group.hosts)) return std::move(group.all);
  group.across = group.all->split(group.hosts.local_rank, name);
  return std::make_unique<TwoLevelEngine>(std::move(group), options_);
}

std::unique_ptr<Engine> make_two_level_engine(std::unique_ptr<Engine> all, const Hosts& hosts,
                                              const std::string& rendezvous,
                                              const CommOptions& options) {
  if (!makes_two_levels(hosts)) return all;
  const auto host = hosts.host_of[static_cast<size_t>(all->rank())];
  TwoLevels levels{std::move(all), nullptr, nullptr, hosts};
  Group here{"on one host", {}};
  for (int rank = 0; rank < levels.all->size(); ++rank) {
    if (hosts.host_of[static_cast<size_t>(rank)] == host) here.ranks.push_back(rank);
  }
  levels.local = make_shm_engine(hosts.local_rank, hosts.local_size,
                                 fmt::format("{}-host{}", rendezvous, host), options,
                                 std::make_shared<const Group>(std::move(here)));
  levels.across = levels.all->split(hosts.local_rank, "across hosts");
  return std::make_unique<TwoLevelEngine>(std::move(levels), options);
}

}  // namespace tessera::comm
