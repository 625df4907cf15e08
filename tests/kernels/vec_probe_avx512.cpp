#include "kernels/vec_probe_body.h"

namespace tessera::kernels::probe {

const Probes& avx512() {
  static constexpr Probes kProbes = probes<simd::Avx512>();
  return kProbes;
}

}  // namespace tessera::kernels::probe
