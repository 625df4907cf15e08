#include "comm/copy.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <vector>

namespace tessera::comm {
namespace {

// Every length round the vectors and lines, at every misalignment of either side, with a margin
// that must stay as it was; short and long, into small and large wholes.
TEST(Copy, TakesEveryLengthAtEveryAlignment) {
  constexpr size_t kMargin = 64;
  const int64_t wholes[] = {0, int64_t{1} << 40};
  for (const size_t base : {0U, 960U, 4096U}) {
    for (size_t bytes = base; bytes < base + 200; bytes += bytes % 64 < 3 ? 1 : 7) {
      for (size_t shift = 0; shift < 64; shift += 5) {
        std::vector<unsigned char> from(bytes + kMargin + 16), to(bytes + 3 * kMargin, 0xee);
        for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 7 + 1);
        const unsigned char* source = from.data() + shift % 16;
        unsigned char* target = to.data() + kMargin + shift;
        if (shift % 2 == 0) copy_for_peer(target, source, static_cast<int64_t>(bytes));
        if (shift % 2 == 1) {
          copy_of_whole(target, source, static_cast<int64_t>(bytes), wholes[shift / 2 % 2]);
        }
        std::vector<unsigned char> expected(to.size(), 0xee);
        for (size_t i = 0; i < bytes; ++i) expected[kMargin + shift + i] = source[i];
        ASSERT_EQ(to, expected) << bytes << " bytes at " << shift;
      }
    }
  }
}

}  // namespace
}  // namespace tessera::comm
