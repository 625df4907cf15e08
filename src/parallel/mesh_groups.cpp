#include "parallel/mesh_groups.h"

#include "spec/schedule.h"

namespace tessera::parallel {

MeshGroups::MeshGroups()
    : self_(comm::make_self_communicator()),
      world_(self_.get()),
      tp_(world_),
      pp_forward_(world_),
      pp_backward_(world_),
      embedding_(world_),
      kv_copies_(world_),
      data_parallel_(std::make_unique<DataParallel>()) {}

MeshGroups::MeshGroups(comm::Communicator& world, const spec::RunConfig& config)
    : config_(config),
      mesh_(spec::mesh_of(config.parallelism)),
      coordinate_(mesh_.at(world.rank())),
      self_(comm::make_self_communicator()),
      world_(&world),
      embedding_(self_.get()),
      kv_copies_(self_.get()) {
  CHECK(mesh_.size() == world.size(), "a mesh of another number of ranks");
  const spec::Coordinate at = coordinate_;
  tp_ = add(Axis::tp, mesh_.tp, mesh_.rank_of({at.pp, at.dp, at.cp, 0}), "tp");
  const int64_t pipeline = mesh_.rank_of({0, at.dp, at.cp, at.tp});
  pp_forward_ = add(Axis::pp, mesh_.pp, pipeline, "pp");
  pp_backward_ = add(Axis::pp, mesh_.pp, pipeline, "pp");
  const int64_t kv_heads = spec::resolved(config.model).num_key_value_heads;
  if (mesh_.tp > kv_heads) {
    num_kv_copies_ = mesh_.tp / kv_heads;
    kv_copies_ = num_kv_copies_ == mesh_.tp
                     ? tp_
                     : add(Axis::tp, num_kv_copies_, world.rank() / num_kv_copies_, "kv");
  }
  add_embedding();
  const account::Sharding sharding = account::sharding_of(config.parallelism);
  if (mesh_.dp == world.size()) {
    data_parallel_ = std::make_unique<DataParallel>(world, sharding);
    return;
  }
  groups_[static_cast<size_t>(Axis::dp)].push_back(world_);
  if (mesh_.dp == 1) {
    data_parallel_ = std::make_unique<DataParallel>();
    return;
  }
  owned_.push_back(world.split(static_cast<int>(mesh_.rank_of({at.pp, 0, at.cp, at.tp})), "dp"));
  data_parallel_ = std::make_unique<DataParallel>(*owned_.back(), sharding);
}

comm::Communicator* MeshGroups::add(Axis axis, int64_t ranks, int64_t color, const char* name) {
  if (ranks == 1) return self_.get();
  owned_.push_back(world_->split(static_cast<int>(color), name));
  groups_[static_cast<size_t>(axis)].push_back(owned_.back().get());
  return owned_.back().get();
}

void MeshGroups::add_embedding() {
  const std::vector<int64_t> ranks = spec::rank_of_stage(config_);
  if (!config_.model.tie_word_embeddings || ranks.front() == ranks.back()) return;
  const spec::Coordinate at = coordinate_;
  const bool here = at.pp == ranks.front() || at.pp == ranks.back();
  if (here) {
    embedding_ = add(Axis::pp, 2, mesh_.rank_of({0, at.dp, at.cp, at.tp}), "embedding");
  } else {
    world_->split(static_cast<int>(mesh_.size() + world_->rank()), "embedding");  // alone
  }
}

comm::Communicator& MeshGroups::copies(const account::Parameter& parameter) {
  if (parameter.copies == 1) return *self_;
  if (parameter.copies == mesh_.tp) return *tp_;
  CHECK(parameter.copies == num_kv_copies_, "copies of a parameter that is none of this mesh");
  return *kv_copies_;
}

template <class F>
auto MeshGroups::sum_of(Axis axis, const F& of) const {
  decltype(of(*world_)) sum{};
  if (axis == Axis::dp) sum += of(*data_parallel_);
  for (const comm::Communicator* group : groups_[static_cast<size_t>(axis)]) sum += of(*group);
  return sum;
}

int64_t MeshGroups::memory_bytes(Axis axis) const {
  return sum_of(axis, [](const auto& groups) { return groups.memory_bytes(); });
}

comm::Traffic MeshGroups::traffic(Axis axis) const {
  return sum_of(axis, [](const auto& groups) { return groups.traffic(); });
}

double MeshGroups::waited_seconds(Axis axis) const {
  return sum_of(axis, [](const auto& groups) { return groups.waited_seconds(); });
}

double MeshGroups::busy_seconds(Axis axis) const {
  return sum_of(axis, [](const auto& groups) { return groups.busy_seconds(); });
}

int64_t MeshGroups::memory_bytes() const {
  int64_t bytes = 0;
  for (const Axis axis : kAxes) bytes += memory_bytes(axis);
  return bytes;
}

void MeshGroups::set_step(int64_t step) {
  data_parallel_->set_step(step);
  for (const auto& groups : groups_) {
    for (comm::Communicator* group : groups) group->set_step(step);
  }
}

void MeshGroups::record(trace::Recorder* recorder) {
  data_parallel_->record(recorder);
  for (const Axis axis : kAxes) {
    for (comm::Communicator* group : groups_[static_cast<size_t>(axis)]) {
      group->record(recorder, lane_of(axis));
    }
  }
}

}  // namespace tessera::parallel
