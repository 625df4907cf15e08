#include "formats/crc32c.h"

#include <array>

namespace tessera::formats {
namespace {

constexpr uint32_t kReflectedPolynomial = 0x82f63b78;
constexpr uint32_t kMaskDelta = 0xa282ead8;

/// What a byte in the low end of the register does to it.
constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1) ^ ((value & 1) != 0 ? kReflectedPolynomial : 0);
    }
    table[byte] = value;
  }
  return table;
}
constexpr std::array<uint32_t, 256> kTable = make_table();

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t value = 0xffffffff;
  for (const char c : bytes) {
    value = (value >> 8) ^ kTable[(value ^ static_cast<unsigned char>(c)) & 0xff];
  }
  return ~value;
}

uint32_t masked_crc32c(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + kMaskDelta;
}

}  // namespace tessera::formats
