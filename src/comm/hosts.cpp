// Two ranks are on one host when its name and the identifier of its boot are the same: containers
// share the second, and machines set up alike may share the first.

#include "comm/hosts.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <string>

#include "comm/cores.h"

namespace tessera::comm {

namespace {

struct Record {
  std::array<char, 64> name{};
  std::array<char, 64> boot{};
  std::array<uint64_t, Seat::kCpuWords> cpus{};
  bool operator==(const Record& other) const { return name == other.name && boot == other.boot; }
};

Record own_record() {
  Record record;
  gethostname(record.name.data(), record.name.size() - 1);
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  std::memcpy(record.boot.data(), boot.data(), std::min(boot.size(), record.boot.size() - 1));
  record.cpus = affinity_cores();
  return record;
}

std::vector<Record> gather_records(int size, const Gather& gather) {
  std::vector<Record> records(static_cast<size_t>(size));
  const Record mine = own_record();
  constexpr int64_t kBytes = sizeof(Record);
  gather(core::View{records.data(), core::DType::u8, {size * kBytes}},
         core::ConstView{&mine, core::DType::u8, {kBytes}});
  return records;
}

/// The ranks of this one's host.
std::vector<const Record*> neighbours_of(int rank, const Hosts& hosts,
                                         const std::vector<Record>& records) {
  std::vector<const Record*> neighbours;
  for (size_t i = 0; i < records.size(); ++i) {
    if (hosts.host_of[i] == hosts.host_of[static_cast<size_t>(rank)]) {
      neighbours.push_back(&records[i]);
    }
  }
  return neighbours;
}

void share_cores(const Record& mine, const std::vector<const Record*>& neighbours, int usable,
                 Hosts& hosts) {
  double share = 0;
  int all = 0;
  for (int core = 0; core < Seat::kCpuWords * 64; ++core) {
    const auto has = [&](const Record& record) {
      return (record.cpus[static_cast<size_t>(core / 64)] >> (core % 64) & 1) != 0;
    };
    const auto sharers = std::count_if(neighbours.begin(), neighbours.end(),
                                       [&](const Record* record) { return has(*record); });
    if (sharers > 0) ++all;
    if (has(mine)) share += 1.0 / static_cast<double>(sharers);
  }
  if (usable > 0) {
    all = std::min(all, usable);
    share = std::min(share, static_cast<double>(usable) / hosts.local_size);
  }
  hosts.cores = share;
  hosts.core_each = all >= hosts.local_size;
}

}  // namespace

Hosts find_hosts(int rank, int size, const Gather& gather, int usable_cores, int ranks_per_host) {
  const std::vector<Record> records = gather_records(size, gather);
  Hosts hosts;
  std::vector<size_t> first;  // rank of each host
  std::vector<int> ranks_on;  // of each host
  for (size_t i = 0; i < records.size(); ++i) {
    size_t host = 0;
    if (ranks_per_host > 0) {
      host = i / static_cast<size_t>(ranks_per_host);
    } else {
      while (host < first.size() && !(records[first[host]] == records[i])) ++host;
    }
    if (host == first.size()) {
      first.push_back(i);
      ranks_on.push_back(0);
    }
    hosts.host_of.push_back(static_cast<int>(host));
    hosts.local_rank_of.push_back(ranks_on[host]++);
  }
  const auto me = static_cast<size_t>(rank);
  hosts.num_hosts = static_cast<int>(first.size());
  hosts.even = std::all_of(ranks_on.begin(), ranks_on.end(),
                           [&](int ranks) { return ranks == ranks_on[0]; });
  hosts.local_rank = hosts.local_rank_of[me];
  hosts.local_size = ranks_on[static_cast<size_t>(hosts.host_of[me])];
  share_cores(records[me], neighbours_of(rank, hosts, records), usable_cores, hosts);
  return hosts;
}

}  // namespace tessera::comm
