#pragma once

// What nearly every file of the pure modules includes, compiled once for all of them: that takes
// three quarters off the time that clang needs for wasm32.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>
