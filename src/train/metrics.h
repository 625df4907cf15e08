#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "formats/event_file.h"

namespace tessera::train {

/// One step, as metrics.jsonl and the line on stdout tell it.
struct StepRecord {
  int64_t step = 0;
  int64_t time_us = 0;  ///< since the epoch
  double loss = 0;
  double grad_norm = 0;
  double lr = 0;
  int64_t tokens = 0;       ///< of the global batch, padding included
  double tokens_per_s = 0;  ///< of the whole world
  double tflops = 0;        ///< a rank's, by account's FLOPs
  double mfu = 0;           ///< tflops over the products' measured rate; 0: not measured
  double step_s = 0;
  int64_t memory_bytes = 0;            ///< this rank's peak by the ledger
  int64_t memory_limit_bytes = 0;      ///< what the machine has, for the share in the line
  double exposed_communication_s = 0;  ///< this rank's wait for communication
  double communication_s = 0;          ///< what its communication took, waited for or not
  std::optional<double> validation_loss;
};

/// One JSON object, without newline.
std::string to_json(const StepRecord& record);

/// The line people and their scripts know from torchtitan:
/// "step: 10  loss:  4.12345  grad_norm:  1.2345  memory: 12.34GiB(15.43%)  tps: 12,345
/// tflops: 123.45  mfu: 12.49%", and the validation loss when there is one.
std::string to_line(const StepRecord& record);

/// What TensorBoard shows of a step, under torchtitan's tags; throughput is the whole world's, as
/// in the line.
std::vector<formats::Scalar> to_scalars(const StepRecord& record);

/// metrics.jsonl: a line a step, flushed, so that a killed run keeps what it wrote.
class MetricsFile {
 public:
  /// Appends. Lines of steps after `last_step` are cut off first: a run that went back to a
  /// checkpoint tells each step once. Throws RunError when the file cannot be written.
  MetricsFile(const std::filesystem::path& path, int64_t last_step);
  void write(const StepRecord& record);

 private:
  std::filesystem::path path_;
  std::ofstream file_;
};

}  // namespace tessera::train
