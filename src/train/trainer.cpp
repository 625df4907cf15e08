#include "train/trainer.h"

#include <fmt/format.h>

#include <chrono>
#include <memory>

#include "account/flops.h"
#include "core/error.h"
#include "formats/config_io.h"
#include "kernels/device.h"
#include "parallel/replica.h"
#include "train/agreement.h"
#include "train/batch_loader.h"
#include "train/checkpoint.h"
#include "train/clock.h"
#include "train/evaluation.h"
#include "train/process_memory.h"
#include "train/product_rate.h"
#include "train/run_data.h"
#include "train/train_step.h"

namespace tessera::train {

namespace {

using core::ConstView;
using core::DType;
using core::View;

/// A run under way on one rank. The order of the members is the order in which they are made.
class Run {
 public:
  Run(const TrainOptions& options, comm::Communicator& comm, const Observer& observer);
  Summary train();

 private:
  void open_folder();
  void load_start();
  /// True when the run is to end after it.
  bool train_one_step(int64_t step);
  void maybe_validate(int64_t step, StepRecord& record);
  void save(int64_t step);
  Summary summarise(int64_t last_step);
  void notice(const std::string& text) const {
    if (comm_.rank() == 0 && observer_.on_notice) observer_.on_notice(text);
  }
  bool is_first_rank() const { return comm_.rank() == 0; }

  const TrainOptions& options_;
  comm::Communicator& comm_;
  const Observer& observer_;
  RunData data_;
  spec::RunConfig config_;  // resolved
  RunFolder folder_;
  int64_t memory_before_ = 0;
  core::MemoryLedger ledger_;
  Prediction prediction_;
  std::unique_ptr<parallel::Replica> replica_;
  std::unique_ptr<TrainStep> step_;
  std::unique_ptr<BatchLoader> loader_;
  std::unique_ptr<MetricsFile> metrics_;
  SampleOrigin origin_;
  ProductRate product_rate_;
  Summary summary_;
  double busy_seconds_ = 0;
  double exposed_seconds_ = 0;
  int64_t steps_done_ = 0;
  int64_t dp_bytes_ = 0;
};

Run::Run(const TrainOptions& options, comm::Communicator& comm, const Observer& observer)
    : options_(options), comm_(comm), observer_(observer) {
  agree(comm_, [&] {
    data_ = load_run_data(options_.config);
    config_ = spec::resolved(with_vocabulary(options_.config, *data_.tokenizer), comm_.size());
  });
  for (const std::string& warning : data_.warnings) notice(warning);
  open_folder();
  product_rate_ = measure_product_rate(config_);
  prediction_ = predict(config_, comm_.memory_bytes());
  memory_before_ = process_memory_bytes();
  ledger_.add(core::Category::communication, comm_.memory_bytes());
  replica_ = std::make_unique<parallel::Replica>(config_, comm_, ledger_,
                                                 expected_activation_bytes(config_));
  load_start();
  step_ = std::make_unique<TrainStep>(config_, *replica_, comm_);
  loader_ = std::make_unique<BatchLoader>(*data_.training, config_.training, comm_.size(),
                                          comm_.rank(), origin_);
}

void Run::open_folder() {
  agree(comm_, [&] {
    if (is_first_rank()) folder_ = open_run_folder(options_.run_dir, options_.existing);
  });
  folder_.root = broadcast_string(comm_, folder_.root.string());
  agree(comm_, [&] {
    if (!is_first_rank()) return;
    write_file_atomically(folder_.config(), formats::to_toml(config_));
    data::save_tokenizer(*data_.tokenizer, folder_.root.string());
  });
}

/// Where the run starts: at the last complete checkpoint, at somebody else's weights, or afresh.
void Run::load_start() {
  std::string resume_from;
  agree(comm_, [&] {
    if (!is_first_rank() || options_.existing != Existing::resume) return;
    const auto latest =
        latest_checkpoint(folder_.checkpoints(), [&](const std::string& text) { notice(text); });
    if (latest) resume_from = latest->string();
  });
  resume_from = broadcast_string(comm_, resume_from);
  agree(comm_, [&] {
    if (!resume_from.empty()) {
      const CheckpointHeader header =
          load_checkpoint(resume_from, replica_->state(), LoadWhat::everything);
      origin_ = {header.step + 1, header.samples};
      notice(fmt::format("resumed from {} (step {}, sample {})", resume_from, header.step,
                         header.samples));
    } else if (!config_.training.load.empty()) {
      load_checkpoint(config_.training.load, replica_->state(), LoadWhat::weights);
      notice("weights loaded from " + config_.training.load);
    } else if (options_.existing == Existing::resume) {
      notice("no checkpoint to resume from; starting at step 1");
    }
    if (is_first_rank()) {
      write_file_atomically(folder_.plan(), to_json(prediction_));
      metrics_ = std::make_unique<MetricsFile>(folder_.metrics(), origin_.first_step - 1);
    }
  });
}

Summary Run::train() {
  if (is_first_rank() && observer_.on_start) {
    observer_.on_start(config_, prediction_, origin_.first_step);
  }
  const int64_t last = config_.training.steps;
  int64_t step = origin_.first_step;
  for (; step <= last; ++step) {
    const bool stop = train_one_step(step);
    if (step == last) break;
    if (stop) {
      summary_.stopped_early = true;
      save(step);
      break;
    }
  }
  return summarise(std::min(step, last));
}

bool Run::train_one_step(int64_t step) {
  const Stopwatch clock;
  const int64_t sent_before = comm_.traffic().total();
  const StepResult result =
      step_->compute_gradients(*loader_, step, options_.stop != nullptr && options_.stop->load());
  step_->update(result);
  const double seconds = clock.seconds();
  dp_bytes_ = comm_.traffic().total() - sent_before;
  busy_seconds_ += seconds;
  exposed_seconds_ += result.exposed_communication_s;
  ++steps_done_;

  StepRecord record;
  record.step = step;
  record.time_us = std::chrono::duration_cast<std::chrono::microseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  record.loss = result.loss;
  record.grad_norm = result.grad_norm;
  record.lr = result.lr;
  record.tokens = config_.training.global_batch_size * config_.data.seq_len;
  record.tokens_per_s = static_cast<double>(record.tokens) / seconds;
  record.tflops = prediction_.flops_per_step / comm_.size() / seconds * 1e-12;
  record.mfu = product_rate_.flops_per_s > 0 ? record.tflops * 1e12 / product_rate_.flops_per_s : 0;
  record.step_s = seconds;
  record.memory_bytes = ledger_.peak_total();
  record.memory_limit_bytes = machine_memory_bytes();
  record.exposed_communication_s = result.exposed_communication_s;
  if (step == origin_.first_step) summary_.loss_first = result.loss;
  summary_.loss_last = result.loss;

  maybe_validate(step, record);
  if (is_first_rank()) {
    metrics_->write(record);
    if (observer_.on_step) observer_.on_step(record);
  }
  const int64_t interval = config_.checkpoint.interval;
  if (step == config_.training.steps || (interval > 0 && step % interval == 0)) save(step);
  return result.stop;
}

void Run::maybe_validate(int64_t step, StepRecord& record) {
  const int64_t freq = config_.validation.freq;
  const bool last = step == config_.training.steps;
  if (!data_.validation || (!last && (freq == 0 || step % freq != 0))) return;
  const Stopwatch clock;
  const int64_t windows = config_.validation.steps * config_.training.global_batch_size;
  record.validation_loss =
      evaluate(*replica_, comm_, *data_.validation, windows, config_.training.micro_batch_size)
          .loss;
  summary_.validation_loss = *record.validation_loss;
  summary_.has_validation = true;
  summary_.validation_seconds += clock.seconds();
}

void Run::save(int64_t step) {
  if (summary_.last_checkpoint == folder_.checkpoint(step).string()) return;
  const Stopwatch clock;
  const CheckpointHeader header{step, config_.training.seed,
                                origin_.sample_of(step + 1, config_.training.global_batch_size),
                                formats::to_toml(config_), fmt::format("dp={}", comm_.size())};
  save_checkpoint(folder_.checkpoint(step), replica_->state(), comm_, header);
  if (is_first_rank()) {
    prune_checkpoints(folder_.checkpoints(), config_.checkpoint.keep_latest_k);
  }
  summary_.last_checkpoint = folder_.checkpoint(step).string();
  summary_.checkpoint_seconds += clock.seconds();
}

Summary Run::summarise(int64_t last_step) {
  const auto ranks = static_cast<size_t>(comm_.size());
  summary_.steps = last_step;
  summary_.unigram_entropy = data_.unigram_entropy;
  summary_.world_size = comm_.size();
  summary_.layout = fmt::format("dp={}", comm_.size());
  summary_.backend = comm_.backend();
  summary_.device = kernels::describe_device();
  summary_.train_seconds = busy_seconds_;
  if (busy_seconds_ > 0) {
    const double steps = static_cast<double>(steps_done_);
    const double tokens =
        static_cast<double>(config_.training.global_batch_size * config_.data.seq_len);
    summary_.tokens_per_s = steps * tokens / busy_seconds_;
    summary_.tflops_per_rank =
        steps * prediction_.flops_per_step / comm_.size() / busy_seconds_ * 1e-12;
    summary_.mfu = product_rate_.flops_per_s > 0
                       ? summary_.tflops_per_rank * 1e12 / product_rate_.flops_per_s
                       : 0;
    summary_.exposed_communication_fraction = exposed_seconds_ / busy_seconds_;
  }
  summary_.predicted = prediction_;

  CategoryBytes mine{};
  for (int i = 0; i < core::kNumCategories; ++i) {
    mine[static_cast<size_t>(i)] = ledger_.peak(static_cast<core::Category>(i));
  }
  summary_.memory_measured.resize(ranks);
  comm_.all_gather(
      View{summary_.memory_measured.data(), DType::i64, {comm_.size() * core::kNumCategories}},
      ConstView{mine.data(), DType::i64, {core::kNumCategories}});
  const int64_t process = process_memory_bytes() - memory_before_;
  summary_.process_memory_bytes.resize(ranks);
  comm_.all_gather(View{summary_.process_memory_bytes.data(), DType::i64, {comm_.size()}},
                   ConstView{&process, DType::i64, {1}});
  summary_.dp_bytes_measured.resize(ranks);
  comm_.all_gather(View{summary_.dp_bytes_measured.data(), DType::i64, {comm_.size()}},
                   ConstView{&dp_bytes_, DType::i64, {1}});
  summary_.weights_hash = weights_hash(replica_->state());
  summary_.run_dir = folder_.root.string();
  agree(comm_, [&] {
    if (is_first_rank()) write_file_atomically(folder_.summary(), to_json(summary_) + "\n");
  });
  return summary_;
}

}  // namespace

Summary train(const TrainOptions& options, comm::Communicator& comm, const Observer& observer) {
  return Run(options, comm, observer).train();
}

}  // namespace tessera::train
