#include "formats/import/batch_rule.h"

#include <limits>

namespace tessera::formats {
namespace {

constexpr std::string_view kGlobal = "training.global_batch_size";
constexpr std::string_view kMicro = "training.micro_batch_size";

/// Positive and small enough to be multiplied by another.
std::optional<int64_t> count_of(const Mapper& m, std::string_view key) {
  const std::optional<int64_t> count = m.whole(key);
  return count && *count > 0 && *count < (int64_t{1} << 30) ? count : std::nullopt;
}

}  // namespace

void map_batch(Mapper& m, const BatchKeys& keys) {
  const std::optional<int64_t> global = count_of(m, keys.global);
  const std::optional<int64_t> micro = count_of(m, keys.micro);
  const std::optional<int64_t> steps = count_of(m, keys.accumulation);
  if (global && micro && steps) {
    const int64_t product = *micro * *steps;
    if (*global % product != 0 || (keys.ranks && *global != product * *keys.ranks)) {
      return m.drop({keys.global, keys.micro, keys.accumulation}, Unmapped::value,
                    std::to_string(*global) + " is not " + std::to_string(*micro) + " x " +
                        std::to_string(*steps) + " x " +
                        (keys.ranks ? std::to_string(*keys.ranks) : "a number of ranks"));
    }
    m.set(kGlobal, std::to_string(*global), {keys.global, keys.accumulation});
  }
  if (global && !micro && steps && *steps > 1 && keys.ranks) {
    const int64_t each = *steps * *keys.ranks;
    if (*global % each == 0) {
      m.set(kMicro, std::to_string(*global / each), {keys.accumulation});
    }
  }
  if (!global && micro && steps && keys.ranks && *keys.ranks < (int64_t{1} << 20)) {
    const int64_t product = *micro * *steps;
    if (product < std::numeric_limits<int64_t>::max() / *keys.ranks) {
      m.set(kGlobal, std::to_string(product * *keys.ranks), {keys.accumulation});
    }
  }
  m.set(kGlobal, m.text(keys.global), {keys.global});
  m.set(kMicro, m.text(keys.micro), {keys.micro});
  if (steps == 1) {
    m.drop({keys.accumulation}, Unmapped::already, "so it is where no global batch says otherwise");
  }
  m.drop({keys.accumulation}, Unmapped::value,
         global ? "micro_batch_size is then the global batch / (this x the data-parallel ranks)"
                : "global_batch_size is then this x the micro-batch x the data-parallel ranks");
}

}  // namespace tessera::formats
