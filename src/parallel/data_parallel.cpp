#include "parallel/data_parallel.h"

namespace tessera::parallel {

DataParallel::DataParallel()
    : own_all_(comm::make_self_communicator()),
      all_(own_all_.get()),
      shard_(all_),
      replicas_(all_) {}

DataParallel::DataParallel(comm::Communicator& all, const account::Sharding& sharding)
    : sharding_(sharding), all_(&all) {
  CHECK(sharding.shards * sharding.replicas == all.size(), "a layout of another number of ranks");
  const int shards = static_cast<int>(sharding.shards);
  // A group of all ranks is there already, and one of a single rank needs nobody.
  if (shards == 1) {
    own_shard_ = comm::make_self_communicator();
  } else if (shards == all.size()) {
    own_replicas_ = comm::make_self_communicator();
  } else {
    own_shard_ = all.split(all.rank() / shards);
    own_replicas_ = all.split(all.rank() % shards);
  }
  shard_ = own_shard_ ? own_shard_.get() : all_;
  replicas_ = own_replicas_ ? own_replicas_.get() : all_;
}

template <class F>
void DataParallel::for_each_group(const F& f) const {
  f(*all_);
  if (own_shard_) f(*own_shard_);
  if (own_replicas_) f(*own_replicas_);
}

int64_t DataParallel::memory_bytes() const {
  int64_t bytes = 0;
  for_each_group([&](const comm::Communicator& group) { bytes += group.memory_bytes(); });
  return bytes;
}

comm::Traffic DataParallel::traffic() const {
  comm::Traffic traffic;
  for_each_group([&](const comm::Communicator& group) { traffic += group.traffic(); });
  return traffic;
}

double DataParallel::waited_seconds() const {
  double seconds = 0;
  for_each_group([&](const comm::Communicator& group) { seconds += group.waited_seconds(); });
  return seconds;
}

double DataParallel::busy_seconds() const {
  double seconds = 0;
  for_each_group([&](const comm::Communicator& group) { seconds += group.busy_seconds(); });
  return seconds;
}

void DataParallel::set_step(int64_t step) {
  for_each_group([&](comm::Communicator& group) { group.set_step(step); });
}

void DataParallel::record(trace::Recorder* recorder) {
  for_each_group([&](comm::Communicator& group) { group.record(recorder, trace::Lane::dp); });
}

}  // namespace tessera::parallel
