#include "parallel/whole_gradients.h"

#include "core/fault.h"
#include "kernels/elementwise.h"

namespace tessera::parallel {

WholeGradients::WholeGradients(ModelState& state, DataParallel& dp, int64_t bucket_bytes)
    : state_(state), dp_(dp), overlap_(bucket_bytes > 0), reduction_(dp) {
  const int64_t element_bytes =
      state.gradients() ? core::size_of(state.gradients().dtype) : int64_t{1};
  buckets_ = account::gradient_buckets(state.table(), element_bytes,
                                       dp.sharding().stage == 0 ? bucket_bytes : 0);
}

void WholeGradients::begin_step(int64_t passes) {
  passes_left_ = passes;
  next_ = 0;
  const bool stale = TESSERA_FAULT("parallel_stale_gradient") && dp_.all().size() > 1 &&
                     dp_.all().rank() == dp_.all().size() - 1;
  if (state_.gradients() && !stale) kernels::zero(state_.gradients());
}

void WholeGradients::begin_pass(bool training) {
  if (training) --passes_left_;
}

void WholeGradients::gradient_ready(int unit) {
  if (!overlap_ || passes_left_ > 0) return;
  // Units are completed from the last to the first, as buckets are.
  if (unit == buckets_[next_].first) reduce(buckets_[next_++]);
}

void WholeGradients::finish_step() {
  while (next_ < buckets_.size()) reduce(buckets_[next_++]);
  reduction_.finish();
}

void WholeGradients::reduce(const account::Bucket& bucket) {
  if (TESSERA_FAULT("parallel_skip_reduction") && bucket.first <= 1) return;
  const View whole = state_.held_gradients(bucket);
  if (!whole) return;
  const bool shared = dp_.sharding().shards > 1;
  const View owned = shared ? state_.owned_trained(StateKind::gradients, bucket.first) : whole;
  reduction_.start(whole, owned, /*final=*/true);
}

}  // namespace tessera::parallel
