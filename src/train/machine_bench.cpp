#include "train/machine_bench.h"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "account/sharding.h"
#include "comm/collective_bench.h"
#include "comm/link_fit.h"
#include "kernels/device.h"
#include "train/cores.h"
#include "train/thread_ranks.h"

namespace tessera::train {

namespace {

using account::UnitKind;

constexpr int kRounds = 5;

account::Company company_of(const MachineBench& bench) {
  return {bench.ranks, bench.threads};
}

/// Parameters whose state a rank owns, but not more than show how fast memory is.
int64_t owned_elements(const spec::RunConfig& config) {
  constexpr int64_t kMost = int64_t{1} << 24;
  const int64_t parts =
      spec::ranks_of_replica(config.parallelism) * account::sharding_of(config.parallelism).shards;
  const int64_t trained =
      account::parameter_table(config.model, config.lora).num_trainable_elements();
  return std::clamp<int64_t>(trained / parts, 1, kMost);
}

/// Work of one part of the measurement, which the ranks do together: adds to the times.
class Measurement {
 public:
  Measurement(const spec::RunConfig& config, const MachineBench& bench,
              const data::Dataset& dataset, account::MachineTimes& machine)
      : config_(config), bench_(bench), dataset_(dataset), machine_(machine) {}

  void run(comm::Communicator& comm) {
    measure_units(comm);
    measure_state(comm);
    measure_links(comm);
  }

 private:
  /// Called by every rank, heeded on the first.
  void say(comm::Communicator& comm, const std::string& what) const {
    if (comm.rank() == 0 && bench_.on_progress) bench_.on_progress(what);
  }

  /// `machine_` is the first rank's to write, between barriers.
  template <class Entry>
  void keep(comm::Communicator& comm, std::vector<Entry>& entries, const Entry& entry) {
    if (comm.rank() == 0) entries.push_back(entry);
    comm.barrier();
  }

  void measure_units(comm::Communicator& comm) {
    for (const int64_t batch : account::micro_batch_sizes(config_)) {
      for (const UnitKind kind : account::kUnitKinds) {
        const std::string shape = account::unit_shape(config_, kind, batch);
        const bool known = account::find_unit(machine_, kind, shape, company_of(bench_)) != nullptr;
        comm.barrier();
        if (known) continue;
        say(comm, shape);
        keep(comm, machine_.units, bench_unit(config_, kind, batch, dataset_, comm, bench_.effort));
      }
    }
  }

  void measure_state(comm::Communicator& comm) {
    const std::string shape = account::state_shape(config_.training);
    const bool known = account::find_state(machine_, shape, company_of(bench_)) != nullptr;
    comm.barrier();
    if (known) return;
    say(comm, "the optimizer, " + shape);
    keep(comm, machine_.states, bench_state(config_, owned_elements(config_), comm, bench_.effort));
  }

  void measure_links(comm::Communicator& comm) {
    for (const int64_t size : account::group_sizes(config_)) {
      const bool known =
          account::find_link(machine_, account::kLinkCollectives[0], size) != nullptr;
      comm.barrier();
      if (known) continue;
      say(comm, "collectives of " + std::to_string(size) + " ranks");
      const auto group = comm.split(comm.rank() / static_cast<int>(size), "bench");
      for (const comm::MeasuredKind& kind : comm::measured_kinds()) {
        const bool used =
            std::any_of(std::begin(account::kLinkCollectives), std::end(account::kLinkCollectives),
                        [&](const std::string& name) { return name == kind.name; });
        if (used) keep(comm, machine_.links, link_of(kind, *group));
      }
    }
  }

  /// The link that one collective's times tell, from messages of a few numbers to those of a block.
  account::LinkTimes link_of(const comm::MeasuredKind& kind, comm::Communicator& group) const {
    constexpr int64_t kSizes[] = {int64_t{1} << 9, int64_t{1} << 15, int64_t{1} << 19,
                                  int64_t{1} << 22, int64_t{1} << 24};
    comm::CollectiveBenchOptions options;
    options.check = false;
    options.iterations = 7;
    options.warmups = 2;
    comm::CollectiveBench bench(group, std::end(kSizes)[-1], options);
    std::vector<comm::LinkSample> samples;
    for (const int64_t bytes : kSizes) {
      const comm::CollectiveTime time = bench.measure(kind, bytes);
      samples.push_back({static_cast<double>(kind.hops(group.size())),
                         kind.bus(group.size()) * static_cast<double>(time.bytes), time.seconds});
    }
    account::LinkTimes link;
    link.collective = kind.name;
    link.name = "shm";
    link.ranks = group.size();
    if (const auto fit = comm::fit_link(samples)) {
      link.latency_s = fit->latency_s;
      link.bytes_per_s = fit->bytes_per_s;
    }
    return link;
  }

  const spec::RunConfig& config_;
  const MachineBench& bench_;
  const data::Dataset& dataset_;
  account::MachineTimes& machine_;
};

/// The entries of every round beyond those known before, each number the median of the rounds'.
template <class Entry>
void add_medians(std::vector<Entry>& known, const std::vector<std::vector<Entry>>& rounds,
                 std::initializer_list<double Entry::*> numbers) {
  for (size_t i = known.size(); i < rounds.front().size(); ++i) {
    Entry entry = rounds.front()[i];
    for (double Entry::* number : numbers) {
      std::vector<double> values;
      for (const std::vector<Entry>& round : rounds) values.push_back(round[i].*number);
      const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
      std::nth_element(values.begin(), middle, values.end());
      entry.*number = *middle;
    }
    known.push_back(std::move(entry));
  }
}

template <class Entry>
std::vector<std::vector<Entry>> each(const std::vector<account::MachineTimes>& rounds,
                                     std::vector<Entry> account::MachineTimes::* entries) {
  std::vector<std::vector<Entry>> all;
  for (const account::MachineTimes& round : rounds) all.push_back(round.*entries);
  return all;
}

}  // namespace

account::MachineTimes measure_machine(const spec::RunConfig& config, const MachineBench& bench,
                                      const data::Dataset& dataset, account::MachineTimes known) {
  known.device = kernels::describe_device();
  known.cores = usable_cores();
  // Other programs disturb a machine for seconds at a time, longer than a part is timed. So all
  // parts are timed in turn, several times over.
  MachineBench once = bench;
  once.effort.seconds = bench.effort.seconds / kRounds;
  std::vector<account::MachineTimes> rounds;
  for (int round = 0; round < kRounds; ++round) {
    rounds.push_back(known);
    Measurement measurement(config, once, dataset, rounds.back());
    run_thread_ranks({bench.ranks, bench.ranks * bench.threads}, comm_options(config),
                     [&](comm::Communicator& comm) { measurement.run(comm); });
    once.on_progress = nullptr;
  }
  using account::LinkTimes, account::StateTimes, account::UnitTimes;
  add_medians(
      known.units, each(rounds, &account::MachineTimes::units),
      {&UnitTimes::forward_s, &UnitTimes::backward_s, &UnitTimes::backward_input_s,
       &UnitTimes::backward_weight_s, &UnitTimes::stream_forward_s, &UnitTimes::stream_backward_s});
  add_medians(
      known.states, each(rounds, &account::MachineTimes::states),
      {&StateTimes::zero_s, &StateTimes::norm_s, &StateTimes::optimizer_s, &StateTimes::copy_s});
  add_medians(known.links, each(rounds, &account::MachineTimes::links),
              {&LinkTimes::latency_s, &LinkTimes::bytes_per_s});
  return known;
}

}  // namespace tessera::train
