#include "kernels/vec_probe_body.h"

namespace tessera::kernels::probe {

const Probes& avx2() {
  static constexpr Probes kProbes = probes<simd::Avx2>();
  return kProbes;
}

}  // namespace tessera::kernels::probe
