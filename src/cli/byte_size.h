#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace tessera::cli {

/// "8", "4K", "64M", "1G": bytes, with powers of 1024 as nccl-tests takes them; "1.5M", "64MB" and
/// "64MiB" too. Nothing where the text is no size above 0, or beyond 2^50.
std::optional<int64_t> parse_bytes(const std::string& text);

}  // namespace tessera::cli
