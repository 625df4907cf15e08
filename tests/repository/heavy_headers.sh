#!/bin/sh
# Third-party headers that cost seconds to parse are included from .cpp files alone, so that nobody
# pays for them by including one of ours.
. "$(dirname "$0")/common.sh"
project_files 'src/*.h' | xargs grep -nHE \
  '#[[:space:]]*include[[:space:]]*[<"](nlohmann/json\.hpp|toml\+\+/|toml\.hpp|yaml-cpp/|CLI/|dnnl|oneapi/|gtest/|gmock/)' |
  sed 's/$/   (a heavy header: include it from a .cpp)/' | report
