// The grammar of layouts: text to layouts and back.

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "spec/layout.h"
#include "spec/nearest.h"
#include "spec/options.h"
#include "spec/schedule.h"
#include "spec/text.h"

namespace tessera::spec {

namespace {

constexpr std::array<std::string_view, 14> kKeys = {
    "dp",          "tp",      "pp",        "sp",   "v",     "schedule",     "accumulate",
    "micro_batch", "backend", "recompute", "zero", "shard", "bucket_bytes", "prefetch"};
constexpr std::array<std::string_view, 2> kLaterKeys = {"cp", "ep"};
constexpr int64_t kMostRanks = 1 << 20;  // of an axis: the product of three fits in 64 bits
constexpr size_t kMostLayouts = 1000;    // of a matrix

bool read_count(std::string_view text, int64_t& value, int64_t least = 1,
                int64_t most = std::numeric_limits<int64_t>::max()) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size() && value >= least &&
         value <= most;
}

/// The field that a key counts in; nullptr when it is another kind of key.
int64_t* count_of(std::string_view key, Layout& layout) {
  if (key == "dp") return &layout.dp;
  if (key == "tp") return &layout.tp;
  if (key == "pp") return &layout.pp;
  if (key == "v") return &layout.v;
  if (key == "accumulate") return &layout.accumulate;
  if (key == "micro_batch") return &layout.micro_batch;
  if (key == "shard") return &layout.shard;
  return nullptr;
}

void read_schedule(std::string_view value, Layout& layout, Violation& violation) {
  if (schedule_kind(value)) {
    layout.schedule = value;
    return;
  }
  violation.why = "no schedule has this name";
  violation.suggest = nearest_schedules(value);
}

void read_backend(std::string_view value, Layout& layout, Violation& violation) {
  layout.backend = Backend::automatic;
  for (const Backend backend : {Backend::automatic, Backend::thread, Backend::shm, Backend::mpi}) {
    if (value != name_of(backend)) continue;
    layout.backend = backend;
    return;
  }
  violation.why = "no such backend", violation.suggest = "auto, thread, shm, mpi";
}

void read_recompute(std::string_view value, Layout& layout, Violation& violation) {
  layout.has_recompute = false;
  for (const Recompute mode : {Recompute::none, Recompute::selective, Recompute::full}) {
    if (value != name_of(mode)) continue;
    layout.has_recompute = true;
    layout.recompute = mode;
  }
  if (!layout.has_recompute)
    violation.why = "no such mode", violation.suggest = "none, selective, full";
}

/// Reads one key=value into `layout`; a violation with an empty `why` means it is fine.
Violation read_pair(std::string_view key, std::string_view value, Layout& layout) {
  Violation violation{std::string(key), std::string(value), "", "", "--layouts"};
  if (int64_t* count = count_of(key, layout)) {
    if (!read_count(value, *count, 1, kMostRanks))
      violation.why = "is not a count", violation.suggest = "1, 2, 3, …";
  } else if (key == "sp") {
    if (value == "0" || value == "1") {
      layout.sp = value == "1" ? 1 : 0;
    } else {
      violation.why = "is neither on nor off", violation.suggest = "0, 1";
    }
  } else if (key == "zero") {
    if (!read_count(value, layout.zero, 0, 3))
      violation.why = "is not a stage of ZeRO", violation.suggest = "0, 1, 2, 3";
  } else if (key == "bucket_bytes" || key == "prefetch") {
    if (!read_count(value, key == "prefetch" ? layout.prefetch : layout.bucket_bytes, 0))
      violation.why = "is not a number of 0 or more", violation.suggest = "0, 1, …";
  } else if (key == "schedule") {
    read_schedule(value, layout, violation);
  } else if (key == "backend") {
    read_backend(value, layout, violation);
  } else if (key == "recompute") {
    read_recompute(value, layout, violation);
  } else if (std::find(kLaterKeys.begin(), kLaterKeys.end(), key) != kLaterKeys.end()) {
    if (value != "1") violation.why = "is not in this version yet", violation.suggest = "1";
  } else {
    violation.why = "is not a key of the layout grammar";
    violation.suggest = std::string(nearest_name(key, {kKeys.begin(), kKeys.end()}));
  }
  return violation;
}

/// A layout's keys have each one value by now.
void check_together(const Layout& layout, std::string_view text,
                    std::vector<Violation>& violations) {
  if (layout.shard > 0 && (layout.zero == 0 || layout.dp % layout.shard != 0)) {
    violations.push_back({"shard", std::to_string(layout.shard),
                          "is not a divisor of dp in a layout with zero=1, 2 or 3", "",
                          "--layouts"});
  }
  if (layout.accumulate > 0 && layout.micro_batch > 0) {
    violations.push_back({"accumulate, micro_batch", std::string(text),
                          "each gives the other, so a layout says one of them", "", "--layouts"});
  }
}

/// Every layout so far with each value of one more key.
void add_key(std::string_view key, std::string_view values, std::vector<Layout>& layouts,
             std::vector<Violation>& violations) {
  std::vector<std::string_view> good;
  for (const std::string_view value : split_trimmed(values, '|')) {
    Layout scratch;
    Violation violation = read_pair(key, value, scratch);
    if (violation.why.empty()) {
      good.push_back(value);
    } else {
      violations.push_back(std::move(violation));
    }
  }
  if (good.empty()) return;
  if (layouts.size() * good.size() > kMostLayouts) {
    violations.push_back({std::string(key), std::string(values),
                          "makes more than " + std::to_string(kMostLayouts) + " layouts of one",
                          "fewer values", "--layouts"});
    return;
  }
  std::vector<Layout> product;
  for (const Layout& layout : layouts) {
    for (const std::string_view value : good) {
      product.push_back(layout);
      read_pair(key, value, product.back());
    }
  }
  layouts = std::move(product);
}

/// One layout, or the matrix that bars make of it.
std::vector<Layout> read_matrix(std::string_view text, std::vector<Violation>& violations) {
  std::vector<Layout> layouts(1);
  std::vector<std::string_view> seen;
  for (std::string_view pair : split_trimmed(text, ',')) {
    const size_t equals = pair.find('=');
    if (equals == std::string_view::npos) {
      violations.push_back({"layout", std::string(pair), "is not key=value", "dp=2", "--layouts"});
      continue;
    }
    const std::string_view key = trimmed(pair.substr(0, equals));
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      violations.push_back({std::string(key), std::string(text), "is there twice",
                            "layouts divided by semicolons, values by bars", "--layouts"});
      continue;
    }
    seen.push_back(key);
    add_key(key, pair.substr(equals + 1), layouts, violations);
  }
  for (const Layout& layout : layouts) check_together(layout, text, violations);
  return layouts;
}

}  // namespace

LayoutList parse_layouts(std::string_view text) {
  LayoutList list;
  for (std::string_view part : split_trimmed(text, ';')) {
    if (part.empty()) continue;
    const std::vector<Layout> layouts = read_matrix(part, list.violations);
    list.layouts.insert(list.layouts.end(), layouts.begin(), layouts.end());
  }
  if (list.layouts.empty()) {
    list.violations.push_back({"layouts", std::string(text), "names no layout",
                               "\"dp=2; dp=4,accumulate=2\"", "--layouts"});
  }
  return list;
}

std::string to_string(const Layout& layout) {
  std::string text = "dp=" + std::to_string(layout.dp);
  if (layout.tp > 1) text += ",tp=" + std::to_string(layout.tp);
  if (layout.pp > 1) text += ",pp=" + std::to_string(layout.pp);
  if (layout.sp >= 0) text += ",sp=" + std::to_string(layout.sp);
  if (!layout.schedule.empty()) text += ",schedule=" + layout.schedule;
  if (layout.v > 0) text += ",v=" + std::to_string(layout.v);
  if (layout.accumulate > 0) text += ",accumulate=" + std::to_string(layout.accumulate);
  if (layout.micro_batch > 0) text += ",micro_batch=" + std::to_string(layout.micro_batch);
  if (layout.zero >= 0) text += ",zero=" + std::to_string(layout.zero);
  if (layout.shard > 0) text += ",shard=" + std::to_string(layout.shard);
  if (layout.bucket_bytes >= 0) text += ",bucket_bytes=" + std::to_string(layout.bucket_bytes);
  if (layout.prefetch >= 0) text += ",prefetch=" + std::to_string(layout.prefetch);
  if (layout.has_recompute) text += ",recompute=" + std::string(name_of(layout.recompute));
  if (layout.backend != Backend::automatic)
    text += ",backend=" + std::string(name_of(layout.backend));
  return text;
}

}  // namespace tessera::spec
