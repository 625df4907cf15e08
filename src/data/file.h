#pragma once

// Files that a user named: those of core/file.h, with messages that tell how to mend the path.

#include <string>
#include <string_view>

#include "core/file.h"

namespace tessera::data {

/// Maps the file at `path`; `what` names its part in messages: "The data file". Throws ConfigError
/// for a path that is missing, unreadable, a folder (the message lists what is in it) or no regular
/// file.
core::MappedFile open_named(const std::string& path, std::string_view what);

/// Begins the file at `path`. Throws ConfigError when no file can be made there.
core::AtomicFile create_named(const std::string& path);

}  // namespace tessera::data
