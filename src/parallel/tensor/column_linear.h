#pragma once

#include "model/linear.h"
#include "parallel/tensor/residual_stream.h"

namespace tessera::parallel {

/// A product whose outputs are shared out: of y = x Wᵀ + b each rank of the group has the rows of W
/// [out/t, in], the elements of b and so the columns of y that are its own (Q, K, V of its heads;
/// gate and up of its part of the MLP's width). What follows works on columns alone, heads or an
/// activation function, and needs nobody else's (Shoeybi et al. 2019, their "f").
///
///   forward          y [B · T, out/t] from all of x: no communication; with sequence parallelism
///                    x is gathered.
///   backward_input   each rank's dy Wᵀ is a summand of dx: an all-reduce, or a reduce-scatter.
///   backward_weight  dW and db from all of x: none; with sequence parallelism x is gathered again
///                    rather than kept (Korthikanti et al. 2022, section 4.2.2).
///
/// x and dx have the rows of the residual stream, y and dy all rows. On the pass's scratch during a
/// call, with sequence parallelism: one [B · T, in].
class ColumnLinear final : public model::Linear {
 public:
  ColumnLinear(const model::Parameters& parameters, const model::LinearSpec& spec,
               comm::Communicator& group);

  int64_t in_width() const override { return local_.in_width(); }
  int64_t out_width() const override { return local_.out_width(); }
  void forward(model::Pass& pass, View y, ConstView x) override;
  void backward_input(model::Pass& pass, View dx, ConstView dy) override;
  void backward_weight(model::Pass& pass, ConstView dy, ConstView x) override;

 private:
  ResidualStream stream_;
  model::DenseLinear local_;  ///< over this rank's rows of W
  bool trains_ = true;        ///< W is trained: frozen, it needs no x
};

}  // namespace tessera::parallel
