#include <cinttypes>
#include <cstdio>

#include "core/dtype.h"
#include "core/rng.h"
#include "core/shape.h"
#include "golden.h"

namespace tessera::golden {

void print_values() {
  for (const uint64_t key : {uint64_t{0}, uint64_t{1234}, ~uint64_t{0}}) {
    const auto draws = core::philox(core::stream_key(key, core::Stream::data_order), key, 7);
    std::printf("philox %" PRIu64 ":", key);
    for (const uint32_t draw : draws) {
      std::printf(" %08" PRIx32 " %.9g", draw, static_cast<double>(core::to_uniform(draw)));
    }
    std::printf("\n");
  }
  std::printf("bf16:");
  for (const float value : {1.0f, 1.00390625f, 1.01171875f, -3.1415927f, 3.4e38f, 1e-40f}) {
    std::printf(" %04x", static_cast<unsigned>(core::bf16(value).bits));
  }
  const core::Shape shape(3, 1 << 16, 1 << 16);
  std::printf("\nelements of 3 x 65536 x 65536: %" PRId64 "\n", shape.elements());
}

}  // namespace tessera::golden
