#include "plan/published_run.h"

#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>

namespace tessera::plan {

namespace {

/// Cuts a CSV (RFC 4180) into records; quotes may hold commas, line ends and doubled quotes.
class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : text_(text) {}

  bool next(std::vector<std::string>& cells) {
    cells.clear();
    if (at_ >= text_.size()) return false;
    std::string cell;
    bool quoted = false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (quoted) {
        if (c != '"') {
          cell += c;
        } else if (at_ + 1 < text_.size() && text_[at_ + 1] == '"') {
          cell += text_[++at_];
        } else {
          quoted = false;
        }
      } else if (c == '"') {
        quoted = true;
      } else if (c == ',') {
        cells.push_back(std::move(cell));
        cell.clear();
      } else if (c == '\n') {
        ++at_;
        break;
      } else if (c != '\r') {
        cell += c;
      }
    }
    cells.push_back(std::move(cell));
    return true;
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

/// Puts a cell into its field, and says what is wrong with it; "": nothing.
using Setter = std::function<const char*(PublishedRun&, const std::string&)>;

Setter text_into(std::string PublishedRun::* field) {
  return [field](PublishedRun& run, const std::string& cell) {
    run.*field = cell;
    return "";
  };
}

/// Largest number of any column: as a count it is exact in 64 bits, and no run has as many of
/// anything.
constexpr double kMost = 1e15;

Setter number_into(std::optional<double> PublishedRun::* field) {
  return [field](PublishedRun& run, const std::string& cell) {
    if (cell.empty()) return "";
    char* end = nullptr;
    const double number = std::strtod(cell.c_str(), &end);
    if (end != cell.c_str() + cell.size() || std::isnan(number)) return "is not a number";
    if (number < 0) return "is not a number from 0 up";
    if (number > kMost) return "is too large: at most 1e15";
    run.*field = number;
    return "";
  };
}

/// Of what was measured: errors are shares of it, and nothing takes no time or no memory.
Setter measured_into(std::optional<double> PublishedRun::* field) {
  return [set = number_into(field), field](PublishedRun& run, const std::string& cell) {
    const char* wrong = set(run, cell);
    return run.*field == 0.0 ? "must be above 0; leave it empty where it was not measured" : wrong;
  };
}

const char* read_memory(PublishedRun& run, const std::string& cell) {
  run.memory_text = cell;
  return run.out_of_memory() ? "" : measured_into(&PublishedRun::mem_gib_per_gpu)(run, cell);
}

/// What some programs begin a UTF-8 file with, and no part of the first column's name.
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

const std::map<std::string, Setter, std::less<>>& setters() {
  using Run = PublishedRun;
  static const std::map<std::string, Setter, std::less<>> all = {
      {"id", text_into(&Run::id)},
      {"source", text_into(&Run::source)},
      {"stack", text_into(&Run::stack)},
      {"run", text_into(&Run::run)},
      {"model", text_into(&Run::model)},
      {"gpu", text_into(&Run::gpu)},
      {"precision", text_into(&Run::precision)},
      {"recompute", text_into(&Run::recompute)},
      {"recompute_detail", text_into(&Run::recompute_detail)},
      {"schedule", text_into(&Run::schedule)},
      {"reshard_after_forward", text_into(&Run::reshard_after_forward)},
      {"assumed", text_into(&Run::assumed)},
      {"mem_gib_per_gpu", read_memory},
      {"params_b", number_into(&Run::params_b)},
      {"layers", number_into(&Run::layers)},
      {"hidden", number_into(&Run::hidden)},
      {"heads", number_into(&Run::heads)},
      {"kv_heads", number_into(&Run::kv_heads)},
      {"ffn", number_into(&Run::ffn)},
      {"vocab", number_into(&Run::vocab)},
      {"seq_len", number_into(&Run::seq_len)},
      {"num_experts", number_into(&Run::num_experts)},
      {"top_k", number_into(&Run::top_k)},
      {"shared_experts", number_into(&Run::shared_experts)},
      {"dense_layers", number_into(&Run::dense_layers)},
      {"dense_ffn", number_into(&Run::dense_ffn)},
      {"num_gpus", number_into(&Run::num_gpus)},
      {"nodes", number_into(&Run::nodes)},
      {"tp", number_into(&Run::tp)},
      {"cp", number_into(&Run::cp)},
      {"pp", number_into(&Run::pp)},
      {"vpp", number_into(&Run::vpp)},
      {"dp", number_into(&Run::dp)},
      {"ep", number_into(&Run::ep)},
      {"zero_stage", number_into(&Run::zero_stage)},
      {"micro_batch", number_into(&Run::micro_batch)},
      {"global_batch", number_into(&Run::global_batch)},
      {"step_time_s", measured_into(&Run::step_time_s)},
      {"mfu_pct_normalised", number_into(&Run::mfu_pct_normalised)},
  };
  return all;
}

}  // namespace

PublishedRuns parse_published_runs(std::string_view csv) {
  PublishedRuns result;
  if (csv.starts_with(kByteOrderMark)) csv.remove_prefix(kByteOrderMark.size());
  CsvReader reader(csv);
  std::vector<std::string> header, cells;
  if (!reader.next(header)) {
    result.errors.emplace_back("the file is empty: the first line names the columns");
    return result;
  }
  bool has_id = false;
  for (const std::string& name : header) has_id = has_id || name == "id";
  if (!has_id) result.errors.emplace_back("line 1: there is no column named id");
  for (int64_t record = 2; reader.next(cells); ++record) {
    const std::string where = "record " + std::to_string(record) + ": ";
    if (cells.size() == 1 && cells[0].empty()) continue;
    if (cells.size() != header.size()) {
      result.errors.push_back(where + std::to_string(cells.size()) + " cells, the header has " +
                              std::to_string(header.size()));
      continue;
    }
    PublishedRun run;
    for (size_t i = 0; i < cells.size(); ++i) {
      const auto setter = setters().find(header[i]);
      if (setter == setters().end()) continue;
      const std::string wrong = setter->second(run, cells[i]);
      if (wrong.empty()) continue;
      result.errors.push_back(where + header[i] + " = '" + cells[i] + "' " + wrong);
    }
    result.runs.push_back(std::move(run));
  }
  return result;
}

}  // namespace tessera::plan
