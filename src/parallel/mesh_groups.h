#pragma once

#include <array>
#include <memory>
#include <vector>

#include "account/parameter_table.h"
#include "comm/communicator.h"
#include "parallel/data_parallel.h"
#include "spec/mesh.h"
#include "spec/run_config.h"
#include "trace/recorder.h"

namespace tessera::parallel {

/// What communication is for, as it is accounted and drawn: data parallelism, to which everything
/// belongs that all ranks of the world agree on; tensor parallelism with the sums over copies; a
/// pipeline with the sum over a tied embedding's two copies.
enum class Axis : uint8_t { dp, tp, pp };
constexpr int kNumAxes = 3;
constexpr Axis kAxes[kNumAxes] = {Axis::dp, Axis::tp, Axis::pp};
constexpr const char* name_of(Axis axis) {
  constexpr const char* names[kNumAxes] = {"dp", "tp", "pp"};
  return names[static_cast<int>(axis)];
}
constexpr trace::Lane lane_of(Axis axis) {
  constexpr trace::Lane lanes[kNumAxes] = {trace::Lane::dp, trace::Lane::tp, trace::Lane::pp};
  return lanes[static_cast<int>(axis)];
}

/// The groups of ranks that this rank of the mesh talks to. A group of one costs nothing; that of
/// data parallelism is the world where the mesh has no other axis.
class MeshGroups {
 public:
  /// One rank alone.
  MeshGroups();
  /// Collective over `world`, which must outlive this. `config` is resolved for its size.
  MeshGroups(comm::Communicator& world, const spec::RunConfig& config);

  /// What it was made from; the default where this is one rank alone.
  const spec::RunConfig& config() const { return config_; }
  const spec::Mesh& mesh() const { return mesh_; }
  /// This rank's place.
  const spec::Coordinate& coordinate() const { return coordinate_; }
  comm::Communicator& world() { return *world_; }
  /// The ranks that share this rank's products, in the order of their parts.
  comm::Communicator& tp() { return *tp_; }
  /// The ranks of this rank's pipeline, in the order of the mesh: one group for activations and one
  /// for gradients, so that neither waits for the other.
  comm::Communicator& pp_forward() { return *pp_forward_; }
  comm::Communicator& pp_backward() { return *pp_backward_; }
  /// The ranks that hold the same part of the model.
  DataParallel& data_parallel() { return *data_parallel_; }
  /// The rank that embeds and the one that has the head, where the head is tied to the embedding of
  /// another rank; elsewhere this rank alone.
  comm::Communicator& embedding() { return *embedding_; }
  /// The ranks that hold the same values of a parameter of this rank's table (Parameter::copies),
  /// data parallelism apart.
  comm::Communicator& copies(const account::Parameter& parameter);

  /// Of all groups of one axis: staging memory, this rank's share; what this rank has sent; how
  /// long it has waited for others; how long its communicators were at work.
  int64_t memory_bytes(Axis axis) const;
  comm::Traffic traffic(Axis axis) const;
  double waited_seconds(Axis axis) const;
  double busy_seconds(Axis axis) const;
  /// Of all axes.
  int64_t memory_bytes() const;
  void set_step(int64_t step);
  /// On the lane of the axis; null ends it.
  void record(trace::Recorder* recorder);

 private:
  /// The ranks that give the same color, or this one alone where there is one a color.
  comm::Communicator* add(Axis axis, int64_t ranks, int64_t color, const char* name);
  void add_embedding();
  /// Of all groups of the axis: `of` takes a communicator, or what data parallelism has of them.
  template <class F>
  auto sum_of(Axis axis, const F& of) const;

  spec::RunConfig config_;
  spec::Mesh mesh_;
  spec::Coordinate coordinate_;
  std::unique_ptr<comm::Communicator> self_;
  comm::Communicator* world_;
  std::vector<std::unique_ptr<comm::Communicator>> owned_;
  /// By axis, each once; without those of data_parallel_.
  std::array<std::vector<comm::Communicator*>, kNumAxes> groups_;
  comm::Communicator* tp_;
  comm::Communicator* pp_forward_;
  comm::Communicator* pp_backward_;
  comm::Communicator* embedding_;
  comm::Communicator* kv_copies_;
  int64_t num_kv_copies_ = 1;
  std::unique_ptr<DataParallel> data_parallel_;
};

}  // namespace tessera::parallel
