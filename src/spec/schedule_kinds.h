#pragma once

// The generators behind make_schedule(), for two ranks and more: one function a kind.

#include "spec/schedule.h"

namespace tessera::spec {

Schedule gpipe(int64_t num_ranks, int64_t num_micro_batches);
Schedule one_f_one_b(int64_t num_ranks, int64_t num_micro_batches);
Schedule interleaved(int64_t num_ranks, int64_t chunks_per_rank, int64_t num_micro_batches);
Schedule zb_h1(int64_t num_ranks, int64_t num_micro_batches);
Schedule zb_v(int64_t num_ranks, int64_t num_micro_batches);

/// No actions yet; stages are dealt out in turn.
Schedule dealt_out(int64_t num_ranks, int64_t chunks_per_rank, int64_t num_micro_batches);
/// The schedule without its micro-batches from `num_micro_batches` on. Nothing that is left waited
/// for them, so it runs to its end if the whole did.
Schedule first_of(Schedule schedule, int64_t num_micro_batches);

}  // namespace tessera::spec
