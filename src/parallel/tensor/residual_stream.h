#pragma once

#include "comm/communicator.h"
#include "model/pass.h"

// Legend: t ranks of a tensor-parallel group; B sequences of T tokens, T' = T / t; W the width of
// what is carried, S = B · T · W the bytes of all of it.

namespace tessera::parallel {

using core::ConstView;
using core::View;

/// How the residual stream lies on the ranks of a tensor-parallel group, and how it gets from them
/// to a product that needs all of it and back.
///
/// Without sequence parallelism every rank has the whole stream (Shoeybi et al., "Megatron-LM",
/// 2019): a product reads it where it is, and the summands of a product's output are added up by an
/// all-reduce, which sends 2 (t − 1)/t · S. With it (pass.stream_parts = t; Korthikanti et al.,
/// "Reducing Activation Recomputation in Large Transformer Models", 2022) rank r has positions
/// [r · T', (r + 1) · T') of every sequence: what lies between the products is then computed and
/// kept once, not t times. An all-gather of (t − 1)/t · S goes before a product and a
/// reduce-scatter of as much behind it, which together are the two halves of that all-reduce.
///
/// A sequence's positions are contiguous in the whole stream, so with one collective a sequence
/// everything is sent from and received where it is needed, and nothing is permuted. Sums are taken
/// in the order of the ranks: a sequence's bits do not depend on the others.
class ResidualStream {
 public:
  /// `group` must outlive this.
  explicit ResidualStream(comm::Communicator& group) : group_(group) {}

  int64_t ranks() const { return group_.size(); }
  int64_t rank() const { return group_.rank(); }
  comm::Communicator& group() const { return group_; }

  /// The whole of x: x itself, or with sequence parallelism [B · T, W] gathered from everybody's
  /// [B · T', W] onto the pass's scratch, in the caller's scope.
  ConstView whole(model::Pass& pass, ConstView x) const;

  /// y = this rank's part (see above) of the sum over the ranks of what product(View) writes into
  /// [B · T, W]: y itself, or with sequence parallelism scratch.
  template <class Product>
  void sum(model::Pass& pass, View y, const Product& product) const {
    if (!is_cut(pass)) {
      product(y);
      add_up(y);
      return;
    }
    const core::Arena::Scope scope(pass.scratch);
    const View summand = allocate_whole(pass, y);
    product(summand);
    scatter_sum(pass, y, summand);
  }

 private:
  /// Whether this pass has sequence parallelism.
  bool is_cut(const model::Pass& pass) const;
  View allocate_whole(model::Pass& pass, ConstView part) const;
  void add_up(View inout) const;
  void scatter_sum(const model::Pass& pass, View part, ConstView whole) const;

  comm::Communicator& group_;
};

}  // namespace tessera::parallel
