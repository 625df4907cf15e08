#pragma once

// What the parts of the validator share: a config under judgement, and what was found so far.

#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "spec/run_config.h"

namespace tessera::spec {

class Findings {
 public:
  /// `config` must outlive this. `world_size` 0: not known yet.
  Findings(const RunConfig& config, int64_t world_size)
      : config_(config), world_size_(world_size) {}

  const RunConfig& config() const { return config_; }
  int64_t world_size() const { return world_size_; }

  void add(std::string_view key, std::string why, std::string suggest);
  /// Whether nothing was found wrong with any of them so far.
  bool ok(std::initializer_list<const char*> keys) const;
  /// Whether all of them are legal by themselves, whatever they have to do with others.
  bool legal(std::initializer_list<const char*> keys) const;
  /// What was found until now is about keys by themselves.
  void end_of_limits() { illegal_ = bad_; }
  /// Whether the key has another value than its default.
  bool changed(std::string_view key) const;
  bool empty() const { return violations_.empty(); }
  std::vector<Violation> take() { return std::move(violations_); }

 private:
  const RunConfig& config_;
  int64_t world_size_;
  std::vector<Violation> violations_;
  std::set<std::string> bad_, illegal_;
};

/// The degrees against the world, the batch and each other.
void check_mesh(Findings& findings);
/// Products cut over ranks, positions too.
void check_tensor_parallelism(Findings& findings);
/// Stages and the order of their micro-batches.
void check_pipeline(Findings& findings);
/// All that concerns more than one rank.
inline void check_parallelism(Findings& findings) {
  check_mesh(findings);
  check_tensor_parallelism(findings);
  check_pipeline(findings);
}

/// Whether the degrees of all axes are legal by themselves and make a mesh.
bool mesh_ok(const Findings& findings);
/// Data-parallel ranks, as far as known; 0: not known. Worth asking for where mesh_ok().
int64_t replicas(const Findings& findings);

}  // namespace tessera::spec
