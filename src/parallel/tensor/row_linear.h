#pragma once

#include "model/linear.h"
#include "parallel/tensor/residual_stream.h"

namespace tessera::parallel {

/// A product whose inputs are shared out: of y = x Wᵀ + b each rank of the group has columns of W
/// [out, in/t] and the same columns of x, which a ColumnLinear and what followed it have left there
/// (o behind the heads, down behind the MLP's activation). All of b is on every rank (Shoeybi et
/// al. 2019, their "g").
///
///   forward          each rank's x Wᵀ is a summand of y: an all-reduce, or with sequence
///                    parallelism a reduce-scatter. Rank 0's summand carries the bias.
///   backward_input   dx [B · T, in/t] from all of dy: no communication; with sequence parallelism
///                    dy is gathered.
///   backward_weight  dW and db from all of dy: none; with sequence parallelism dy is gathered
///                    again, as it may be long since backward_input (zero-bubble schedules) and t
///                    times the stream would lie there meanwhile. db is the same on every rank.
///
/// y and dy have the rows of the residual stream, x and dx all rows. On the pass's scratch during a
/// call, with sequence parallelism: one [B · T, out].
class RowLinear final : public model::Linear {
 public:
  RowLinear(const model::Parameters& parameters, const model::LinearSpec& spec,
            comm::Communicator& group);

  int64_t in_width() const override { return local_.in_width(); }
  int64_t out_width() const override { return local_.out_width(); }
  void forward(model::Pass& pass, View y, ConstView x) override;
  void backward_input(model::Pass& pass, View dx, ConstView dy) override;
  void backward_weight(model::Pass& pass, ConstView dy, ConstView x) override;

 private:
  ResidualStream stream_;
  model::DenseLinear local_;    ///< over this rank's columns of W, with the bias
  model::DenseLinear summand_;  ///< the same without
  bool trains_ = true;          ///< W is trained: frozen, it needs no dy
};

}  // namespace tessera::parallel
