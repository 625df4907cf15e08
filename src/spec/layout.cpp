#include "spec/layout.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "spec/nearest.h"
#include "spec/options.h"

namespace tessera::spec {

namespace {

constexpr std::array<std::string_view, 9> kKeys = {"dp",      "accumulate",   "micro_batch",
                                                   "backend", "recompute",    "zero",
                                                   "shard",   "bucket_bytes", "prefetch"};
constexpr std::array<std::string_view, 6> kLaterKeys = {"tp", "pp", "cp", "ep", "sp", "v"};

std::string_view trimmed(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(separator);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool read_count(std::string_view text, int64_t& value, int64_t least = 1) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size() && value >= least;
}

/// Reads one key=value into `layout`; a violation with an empty `why` means it is fine.
Violation read_pair(std::string_view key, std::string_view value, Layout& layout) {
  Violation violation{std::string(key), std::string(value), "", "", "--layouts"};
  const auto count = [&](int64_t& field) {
    if (!read_count(value, field))
      violation.why = "is not a count", violation.suggest = "1, 2, 3, …";
  };
  if (key == "dp") {
    count(layout.dp);
  } else if (key == "accumulate") {
    count(layout.accumulate);
  } else if (key == "micro_batch") {
    count(layout.micro_batch);
  } else if (key == "shard") {
    count(layout.shard);
  } else if (key == "zero") {
    if (!read_count(value, layout.zero, 0) || layout.zero > 3)
      violation.why = "is not a stage of ZeRO", violation.suggest = "0, 1, 2, 3";
  } else if (key == "bucket_bytes" || key == "prefetch") {
    if (!read_count(value, key == "prefetch" ? layout.prefetch : layout.bucket_bytes, 0))
      violation.why = "is not a number of 0 or more", violation.suggest = "0, 1, …";
  } else if (key == "backend") {
    if (value == "thread")
      layout.backend = Backend::thread;
    else if (value == "shm")
      layout.backend = Backend::shm;
    else if (value == "mpi")
      layout.backend = Backend::mpi;
    else if (value != "auto")
      violation.why = "no such backend", violation.suggest = "auto, thread, shm, mpi";
  } else if (key == "recompute") {
    for (const Recompute mode : {Recompute::none, Recompute::selective, Recompute::full}) {
      if (value != name_of(mode)) continue;
      layout.has_recompute = true;
      layout.recompute = mode;
    }
    if (!layout.has_recompute)
      violation.why = "no such mode", violation.suggest = "none, selective, full";
  } else if (std::find(kLaterKeys.begin(), kLaterKeys.end(), key) != kLaterKeys.end()) {
    if (value != "1" && !(value == "0" && key == "sp")) {
      violation.why = "is not in this version yet";
      violation.suggest = key == "sp" ? "0" : "1";
    }
  } else {
    violation.why = "is not a key of the layout grammar";
    violation.suggest = std::string(nearest_name(key, {kKeys.begin(), kKeys.end()}));
  }
  return violation;
}

Layout read_layout(std::string_view text, std::vector<Violation>& violations) {
  Layout layout;
  std::vector<std::string_view> seen;
  for (std::string_view pair : split(text, ',')) {
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos) {
      violations.push_back({"layout", std::string(pair), "is not key=value", "dp=2", "--layouts"});
      continue;
    }
    const std::string_view key = trimmed(pair.substr(0, equals));
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      violations.push_back({std::string(key), std::string(text), "is there twice",
                            "layouts divided by semicolons", "--layouts"});
    }
    seen.push_back(key);
    Violation violation =
        read_pair(trimmed(pair.substr(0, equals)), trimmed(pair.substr(equals + 1)), layout);
    if (!violation.why.empty()) violations.push_back(std::move(violation));
  }
  if (layout.shard > 0 && (layout.zero == 0 || layout.dp % layout.shard != 0)) {
    violations.push_back({"shard", std::to_string(layout.shard),
                          "is not a divisor of dp in a layout with zero=1, 2 or 3", "",
                          "--layouts"});
  }
  if (layout.accumulate > 0 && layout.micro_batch > 0) {
    violations.push_back({"accumulate, micro_batch", std::string(text),
                          "each gives the other, so a layout says one of them", "", "--layouts"});
  }
  return layout;
}

}  // namespace

LayoutList parse_layouts(std::string_view text) {
  LayoutList list;
  for (std::string_view part : split(text, ';')) {
    if (!part.empty()) list.layouts.push_back(read_layout(part, list.violations));
  }
  if (list.layouts.empty()) {
    list.violations.push_back({"layouts", std::string(text), "names no layout",
                               "\"dp=2; dp=4,accumulate=2\"", "--layouts"});
  }
  return list;
}

std::string to_string(const Layout& layout) {
  std::string text = "dp=" + std::to_string(layout.dp);
  if (layout.accumulate > 0) text += ",accumulate=" + std::to_string(layout.accumulate);
  if (layout.micro_batch > 0) text += ",micro_batch=" + std::to_string(layout.micro_batch);
  if (layout.zero >= 0) text += ",zero=" + std::to_string(layout.zero);
  if (layout.shard > 0) text += ",shard=" + std::to_string(layout.shard);
  if (layout.bucket_bytes >= 0) text += ",bucket_bytes=" + std::to_string(layout.bucket_bytes);
  if (layout.prefetch >= 0) text += ",prefetch=" + std::to_string(layout.prefetch);
  if (layout.has_recompute) text += ",recompute=" + std::string(name_of(layout.recompute));
  if (layout.backend == Backend::thread) text += ",backend=thread";
  if (layout.backend == Backend::shm) text += ",backend=shm";
  if (layout.backend == Backend::mpi) text += ",backend=mpi";
  return text;
}

Layout layout_of(const RunConfig& config) {
  const ParallelismConfig& parallelism = config.parallelism;
  Layout layout;
  layout.dp = parallelism.data_parallel_degree;
  if (parallelism.zero_stage > 0) layout.zero = parallelism.zero_stage;
  const bool hybrid = layout.zero > 0 && shard_ranks(parallelism) != layout.dp;
  if (hybrid) layout.shard = shard_ranks(parallelism);
  return layout;
}

Layout completed(Layout layout, const RunConfig& config) {
  const ParallelismConfig& parallelism = config.parallelism;
  const bool several = layout.dp > 1;
  const bool said = layout.zero >= 0;
  if (!said && several && parallelism.zero_stage > 0) layout.zero = parallelism.zero_stage;
  const int64_t shard = parallelism.shard_degree;
  if (!said && layout.zero > 0 && layout.shard == 0 && shard > 0 && layout.dp % shard == 0) {
    layout.shard = shard;
  }
  return layout;
}

RunConfig with_layout(RunConfig config, const Layout& given) {
  const Layout layout = completed(given, config);
  const int64_t accumulation = std::max<int64_t>(layout.accumulate, 1);
  const int64_t largest =
      micro_batch_size_for(config.training.global_batch_size, layout.dp, accumulation);
  ParallelismConfig& parallelism = config.parallelism;
  parallelism.data_parallel_degree = layout.dp;
  parallelism.zero_stage = std::max<int64_t>(layout.zero, 0);
  parallelism.shard_degree = layout.shard > 0 ? layout.shard : -1;
  if (layout.bucket_bytes >= 0) parallelism.bucket_bytes = layout.bucket_bytes;
  if (layout.prefetch >= 0) parallelism.prefetch = layout.prefetch;
  if (parallelism.zero_stage < 3) parallelism.prefetch = ParallelismConfig{}.prefetch;
  config.training.micro_batch_size =
      layout.micro_batch > 0 ? std::min(layout.micro_batch, largest) : largest;
  if (layout.has_recompute) config.activation_checkpoint.mode = layout.recompute;
  config.comm.backend = layout.backend;
  return config;
}

}  // namespace tessera::spec
