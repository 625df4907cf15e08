#include "kernels/onednn/onednn.h"

#include <dnnl.h>

namespace tessera::kernels::onednn {

std::string version() {
  const dnnl_version_t* linked = dnnl_version();
  return std::to_string(linked->major) + "." + std::to_string(linked->minor) + "." +
         std::to_string(linked->patch);
}

void hold_to_avx2() { dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2); }

}  // namespace tessera::kernels::onednn
