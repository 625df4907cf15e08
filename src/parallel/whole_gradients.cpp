#include "parallel/whole_gradients.h"

#include <algorithm>

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

void WholeGradients::begin_step(const account::UnitPlan& plan) {
  awaited_ = plan.contributions;
  next_ = 0;
  const bool stale = TESSERA_FAULT("parallel_stale_gradient") && dp_.all().size() > 1 &&
                     dp_.all().rank() == dp_.all().size() - 1;
  if (state_.gradients() && !stale) kernels::zero(state_.gradients());
}

void WholeGradients::gradient_ready(int unit) {
  --awaited_[static_cast<size_t>(unit)];
  if (!overlap_) return;
  while (next_ < buckets_.size() && is_complete(buckets_[next_])) reduce(buckets_[next_++]);
}

bool WholeGradients::is_complete(const account::Bucket& bucket) const {
  const auto first = awaited_.begin() + bucket.first;
  return std::all_of(first, first + bucket.count, [](int64_t awaited) { return awaited == 0; });
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
