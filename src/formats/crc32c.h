#pragma once

#include <cstdint>
#include <string_view>

namespace tessera::formats {

/// CRC-32C (Castagnoli; RFC 3720, appendix B.4) of `bytes`: a byte at a time from a table, which is
/// plenty for the hundreds of bytes a step that it is used for.
uint32_t crc32c(std::string_view bytes);

/// The form in which TFRecord files hold it, so that the checksum of data that holds checksums
/// stays a good one: rotated right by 15 bits, plus a constant.
uint32_t masked_crc32c(std::string_view bytes);

}  // namespace tessera::formats
