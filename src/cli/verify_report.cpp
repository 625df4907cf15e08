#include "cli/verify_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "spec/layout.h"

namespace tessera::cli {

namespace {

using train::LayoutVerdict;
using train::Tolerance;

bool is_one_rank(const std::string& reference) {
  return reference == spec::to_string(spec::Layout{});
}

nlohmann::ordered_json to_json(const Tolerance& tolerance) {
  return {{"loss", tolerance.loss}, {"grad_norm", tolerance.norm}, {"weights", tolerance.weights}};
}

nlohmann::ordered_json to_json(const VerifyRow& row) {
  const LayoutVerdict& v = row.verdict;
  nlohmann::ordered_json json = {{"layout", v.layout},
                                 {"ok", v.ok},
                                 {"bitwise", v.bitwise},
                                 {"loss_max_relative", v.loss_max_relative},
                                 {"grad_norm_max_relative", v.grad_norm_max_relative},
                                 {"gradients_max_relative_l2", v.gradients_max_relative_l2},
                                 {"weights_max_relative_l2", v.weights_max_relative_l2},
                                 {"first_divergence", nullptr},
                                 {"reference", row.reference},
                                 {"tolerance", to_json(row.tolerance)}};
  if (!v.ok) {
    json["first_divergence"] = {{"step", v.first_divergence_step},
                                {"tensor", v.first_divergence_tensor}};
    json["why"] = v.why;
  }
  return json;
}

std::string outcome(const VerifyRow& row) {
  const LayoutVerdict& v = row.verdict;
  const std::string to = is_one_rank(row.reference) ? "" : " to " + row.reference;
  if (v.bitwise && v.ok) return "equal to the bit" + to;
  if (v.ok) return "ok";
  return (v.failed ? "FAILED: " : "MISMATCH" + to + ": ") + v.why;
}

std::string tolerance_line(const std::string& name, size_t width, const Tolerance& tolerance) {
  return fmt::format("{:<{}} {:>9.0e} {:>9.0e} {:>9} {:>9.0e}\n", name, width, tolerance.loss,
                     tolerance.norm, "", tolerance.weights);
}

bool same(const Tolerance& a, const Tolerance& b) {
  return a.loss == b.loss && a.norm == b.norm && a.weights == b.weights;
}

/// The bytes of the character of UTF-8 that `text` begins with; 0 when it begins with none.
size_t length_of_character(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xe0 && byte(1) < 0xa0) || (first == 0xf0 && byte(1) < 0x90);
  const bool surrogate = first == 0xed && byte(1) > 0x9f;
  const bool beyond = first == 0xf4 && byte(1) > 0x8f;
  const bool no_character = first == 0xef && byte(1) == 0xbf && byte(2) >= 0xbe;
  return overlong || surrogate || beyond || no_character ? 0 : length;
}

/// As the value of an attribute; what XML 1.0 cannot hold is a question mark.
std::string escaped(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const size_t length = length_of_character(text);
    const char c = text.front();
    if (length == 0) {
      result += '?';
    } else if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&quot;";
    } else if (c == '\n' || c == '\t' || c == '\r') {
      result += fmt::format("&#{};", static_cast<int>(c));
    } else if (length == 1 && static_cast<unsigned char>(c) < 0x20) {
      result += '?';
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return result;
}

}  // namespace

std::string verify_table(const std::vector<VerifyRow>& rows) {
  size_t width = 36;
  for (const VerifyRow& row : rows) width = std::max(width, row.verdict.layout.size());
  std::string text = fmt::format("{:<{}} {:>9} {:>9} {:>9} {:>9}\n", "layout", width, "losses",
                                 "norms", "gradients", "weights");
  const Tolerance* before = nullptr;
  for (const VerifyRow& row : rows) {
    const LayoutVerdict& v = row.verdict;
    if (before == nullptr || !same(*before, row.tolerance)) {
      text += tolerance_line("tolerance", width, row.tolerance);
      before = &row.tolerance;
    }
    text += fmt::format("{:<{}} {:>9.1e} {:>9.1e} {:>9.1e} {:>9.1e}  {}\n", v.layout, width,
                        v.loss_max_relative, v.grad_norm_max_relative, v.gradients_max_relative_l2,
                        v.weights_max_relative_l2, outcome(row));
    if (!v.ok && v.first_divergence_step > 0) {
      text += fmt::format("{:<{}} first seen at step {} in {}\n", "", width,
                          v.first_divergence_step, v.first_divergence_tensor);
    }
  }
  return text;
}

std::string verify_json(const std::vector<VerifyRow>& rows, const Tolerance& tolerance,
                        int64_t steps) {
  nlohmann::ordered_json json = {{"reference", spec::to_string(spec::Layout{})},
                                 {"steps", steps},
                                 {"tolerance", to_json(tolerance)},
                                 {"layouts", nlohmann::ordered_json::array()}};
  for (const VerifyRow& row : rows) json["layouts"].push_back(to_json(row));
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string verify_junit(const std::vector<VerifyRow>& rows) {
  int failures = 0, errors = 0;
  std::string cases;
  for (const VerifyRow& row : rows) {
    const LayoutVerdict& v = row.verdict;
    cases += fmt::format("  <testcase classname=\"tessera.verify\" name=\"{}\"", escaped(v.layout));
    if (v.ok) {
      cases += "/>\n";
      continue;
    }
    ++(v.failed ? errors : failures);
    std::string message = v.why;
    if (v.first_divergence_step > 0) {
      message += fmt::format("; first seen at step {} in {}", v.first_divergence_step,
                             v.first_divergence_tensor);
    }
    cases += fmt::format(">\n    <{} message=\"{}\"/>\n  </testcase>\n",
                         v.failed ? "error" : "failure", escaped(message));
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"tessera verify\" tests=\"{}\" "
      "failures=\"{}\" errors=\"{}\" skipped=\"0\">\n{}</testsuite>\n",
      rows.size(), failures, errors, cases);
}

}  // namespace tessera::cli
