#include "train/machine_bench.h"

#include <algorithm>
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
    if (bench_.units) measure_units(comm);
    if (bench_.units) measure_state(comm);
    if (bench_.links) measure_links(comm);
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

}  // namespace

account::MachineTimes measure_machine(const spec::RunConfig& config, const MachineBench& bench,
                                      const data::Dataset& dataset, account::MachineTimes known) {
  known.device = kernels::describe_device();
  known.cores = usable_cores();
  Measurement measurement(config, bench, dataset, known);
  run_thread_ranks({bench.ranks, bench.ranks * bench.threads}, comm_options(config),
                   [&](comm::Communicator& comm) { measurement.run(comm); });
  return known;
}

}  // namespace tessera::train
