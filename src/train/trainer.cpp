#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>

#include "core/error.h"
#include "formats/config_io.h"
#include "kernels/device.h"
#include "parallel/replica.h"
#include "spec/layout.h"
#include "train/agreement.h"
#include "train/batch_loader.h"
#include "train/checkpoint.h"
#include "train/clock.h"
#include "train/evaluation.h"
#include "train/mesh_on_hosts.h"
#include "train/pipeline_times.h"
#include "train/process_memory.h"
#include "train/product_rate.h"
#include "train/run_data.h"
#include "train/run_trace.h"
#include "train/start_weights.h"
#include "train/train_step.h"

namespace tessera::train {

namespace {

using core::ConstView;
using core::DType;
using core::View;

using AxisSeconds = std::array<double, parallel::kNumAxes>;
using AxisTraffic = std::array<comm::Traffic, parallel::kNumAxes>;

/// f of every axis.
template <class F>
auto by_axis(const F& f) {
  std::array<decltype(f(parallel::Axis::dp)), parallel::kNumAxes> values{};
  for (const parallel::Axis axis : parallel::kAxes) values[static_cast<size_t>(axis)] = f(axis);
  return values;
}

/// One number of every rank, on every rank.
std::vector<int64_t> gather(comm::Communicator& comm, int64_t mine) {
  std::vector<int64_t> all(static_cast<size_t>(comm.size()));
  comm.all_gather(View{all.data(), DType::i64, {comm.size()}}, ConstView{&mine, DType::i64, {1}});
  return all;
}

/// What the axes have counted.
struct AxisCounters {
  explicit AxisCounters(const parallel::MeshGroups& groups)
      : sent(by_axis([&](parallel::Axis axis) { return groups.traffic(axis); })),
        waited(by_axis([&](parallel::Axis axis) { return groups.waited_seconds(axis); })),
        busy(by_axis([&](parallel::Axis axis) { return groups.busy_seconds(axis); })) {}
  AxisTraffic sent;
  AxisSeconds waited, busy;
};

/// A run under way on one rank. The order of the members is the order in which they are made.
class Run {
 public:
  Run(const TrainOptions& options, comm::Communicator& comm, const Observer& observer);
  Summary train();

 private:
  void check_ranks_agree();
  void check_folder();
  void claim_folder();
  void load_start();
  std::string load_newest_checkpoint();
  void resume_from(const std::filesystem::path& checkpoint);
  /// True when the run is to end after it.
  bool train_one_step(int64_t step);
  StepRecord record_of(const StepResult& result, double seconds) const;
  void begin_trace();
  trace::Recorder* recorder() { return trace_ ? trace_->recorder() : nullptr; }
  void maybe_validate(int64_t step, StepRecord& record);
  void save(int64_t step);
  Summary summarise(int64_t last_step);
  void summarise_ranks();
  void notice(const std::string& text) const {
    if (comm_.rank() == 0 && observer_.on_notice) observer_.on_notice(text);
  }
  int64_t tokens_per_step() const {
    return config_.training.global_batch_size * config_.data.seq_len;
  }
  /// Model FLOPs of this rank in a second, at that many seconds a step.
  double rank_flops_per_s(double step_seconds) const {
    return prediction_.flops_per_step / comm_.size() / step_seconds;
  }
  std::string layout() const { return spec::to_string(spec::layout_of(config_)); }
  bool is_first_rank() const { return comm_.rank() == 0; }

  const TrainOptions& options_;
  comm::Communicator& comm_;
  const Observer& observer_;
  RunData data_;
  spec::RunConfig config_;  // resolved
  RunFolder folder_;
  std::optional<RunLock> lock_;
  int64_t memory_before_ = 0;
  int64_t machine_memory_ = machine_memory_bytes();
  core::MemoryLedger ledger_;
  Prediction prediction_;
  std::unique_ptr<parallel::MeshGroups> groups_;
  std::unique_ptr<parallel::Replica> replica_;
  std::unique_ptr<TrainStep> step_;
  std::unique_ptr<BatchLoader> loader_;
  std::unique_ptr<MetricsFile> metrics_;
  std::unique_ptr<formats::EventFile> events_;  // where metrics.tensorboard asks for it
  SampleOrigin origin_;
  double product_flops_per_s_ = 0;
  Summary summary_;
  double busy_seconds_ = 0;
  AxisSeconds waited_seconds_{};         // for communication, of busy_seconds_
  AxisSeconds communication_seconds_{};  // waited for or not
  int64_t steps_done_ = 0;
  AxisTraffic sent_{};  // in the last step
  std::optional<PipelineTimes> pipeline_times_;
  std::unique_ptr<RunTrace> trace_;  // where profiling.trace asks for it
};

Run::Run(const TrainOptions& options, comm::Communicator& comm, const Observer& observer)
    : options_(options), comm_(comm), observer_(observer) {
  agree(comm_, [&] {
    data_ = load_run_data(options_.config);
    config_ = spec::resolved(with_vocabulary(options_.config, *data_.tokenizer), comm_.size());
  });
  for (const std::string& warning : data_.warnings) notice(warning);
  check_ranks_agree();
  check_folder();
  groups_ = std::make_unique<parallel::MeshGroups>(comm_, config_);
  prediction_ = predict(config_, gather(comm_, groups_->memory_bytes()));
  agree(comm_, [&] {
    const auto tensor = static_cast<size_t>(parallel::Axis::tp);
    const AxisBytes& sent = prediction_.bytes_per_step[static_cast<size_t>(comm_.rank())];
    check_mesh_on_hosts(config_, options_.host_of, sent[tensor]);
  });
  const int ranks_on_host = options.ranks_on_host > 0 ? options.ranks_on_host : comm_.size();
  agree(comm_, [&] { check_run_fits(config_, groups_->memory_bytes(), ranks_on_host, "the run"); });
  product_flops_per_s_ = measure_product_rate(config_);
  memory_before_ = process_memory_bytes();
  ledger_.add(core::Category::communication, groups_->memory_bytes());
  replica_ = std::make_unique<parallel::Replica>(config_, *groups_, ledger_,
                                                 expected_arena_bytes(config_, comm_.rank()));
  load_start();
  claim_folder();
  step_ = std::make_unique<TrainStep>(config_, *replica_);
  pipeline_times_.emplace(replica_->pipeline().schedule());
  loader_ = std::make_unique<BatchLoader>(*data_.training, config_.training,
                                          static_cast<int>(groups_->mesh().dp),
                                          static_cast<int>(groups_->coordinate().dp), origin_);
}

/// Ranks that were started with different configs would train on, each its own model.
void Run::check_ranks_agree() {
  const std::string mine = formats::to_toml(config_);
  const std::string theirs = broadcast_string(comm_, mine);
  agree(comm_, [&] {
    std::istringstream here(mine);
    std::istringstream there(theirs);
    for (std::string a, b; std::getline(here, a) && std::getline(there, b);) {
      if (a == b) continue;
      throw core::ConfigError(
          fmt::format("this rank was started with another config than rank 0: {} here, {} there. "
                      "Give all ranks the same command line",
                      a, b));
    }
  });
}

/// Everything about the run's folder that can be wrong, before anything is changed.
void Run::check_folder() {
  agree(comm_, [&] {
    if (!is_first_rank()) return;
    folder_ = check_run_folder(options_.run_dir, options_.existing);
    if (config_.training.load.empty() || options_.existing != Existing::overwrite) return;
    const std::string load = find_weights(config_.training.load).path.string();
    const std::string root = std::filesystem::absolute(folder_.root).lexically_normal().string();
    if (load.rfind(root, 0) == 0) {
      throw core::ConfigError(fmt::format(
          "training.load = {} lies in the run folder that --overwrite would empty. Choose another "
          "--run-dir",
          config_.training.load));
    }
  });
  folder_.root = broadcast_string(comm_, folder_.root.string());
}

/// From here on the folder is this run's.
void Run::claim_folder() {
  agree(comm_, [&] {
    if (!is_first_rank()) return;
    lock_.emplace(open_run_folder(folder_, options_.existing));
    if (origin_.first_step > config_.training.steps) return;  // nothing to do: leave all as it is
    write_file_atomically(folder_.config(), formats::to_toml(config_));
    data::save_tokenizer(*data_.tokenizer, folder_.root.string());
    write_file_atomically(folder_.plan(), to_json(prediction_));
    metrics_ = std::make_unique<MetricsFile>(folder_.metrics(), origin_.first_step - 1);
    if (!config_.metrics.tensorboard) return;
    events_ = std::make_unique<formats::EventFile>(folder_.tensorboard(), origin_.first_step);
  });
}

/// Continues a checkpoint. All ranks together; throws what they agree on.
void Run::resume_from(const std::filesystem::path& checkpoint) {
  CheckpointHeader header;
  agree(comm_, [&] {
    header = load_checkpoint(checkpoint, config_, replica_->state(), LoadWhat::everything,
                             {comm_.rank(), comm_.size()});
    check_same_model(header, config_, checkpoint, /*resuming=*/true);
    if (header.sampler_seed != config_.training.seed) {
      throw core::ConfigError(fmt::format(
          "training.seed = {} but {} was trained with {}: the order of samples would be another, "
          "and some would come twice and others never. Use training.seed = {}, or start a new run "
          "from its weights with training.load",
          config_.training.seed, checkpoint.string(), header.sampler_seed, header.sampler_seed));
    }
  });
  replica_->share_weights();
  origin_ = {header.step + 1, header.samples};
  notice(fmt::format("resumed from {} (step {}, sample {})", checkpoint.string(), header.step,
                     header.samples));
}

/// Resumes from the newest checkpoint that is whole; passes over the others and says so. Its path;
/// empty when there is none.
std::string Run::load_newest_checkpoint() {
  std::vector<std::filesystem::path> found;
  if (is_first_rank()) found = list_checkpoints(folder_.checkpoints());
  std::string damaged;
  for (;;) {
    std::string path =
        broadcast_string(comm_, found.empty() ? std::string() : found.back().string());
    if (path.empty() && !damaged.empty()) {
      throw AgreedRunError(fmt::format(
          "no checkpoint in {} can be read; the newest: {}. Start anew with --overwrite",
          folder_.checkpoints().string(), damaged));
    }
    if (path.empty()) return "";
    try {
      resume_from(path);
      return path;
    } catch (const AgreedRunError& error) {
      notice(fmt::format("passing over {}: {}", path, error.what()));
      if (damaged.empty()) damaged = error.what();
      if (is_first_rank()) found.pop_back();
    }
  }
}

/// Where the run starts: at the last complete checkpoint, at somebody else's weights, or afresh.
void Run::load_start() {
  const bool resume = options_.existing == Existing::resume;
  const std::string resumed = resume ? load_newest_checkpoint() : "";
  if (resume && resumed.empty()) notice("no checkpoint to resume from; starting at step 1");
  if (!resumed.empty() || config_.training.load.empty()) return;
  std::vector<std::string> notes;
  agree(comm_, [&] {
    spec::RunConfig config = config_;
    config.model_hf = options_.config.model_hf;
    notes = load_weights(find_weights(config_.training.load), config, replica_->state(),
                         LoadWhat::base, {comm_.rank(), comm_.size()});
  });
  replica_->share_weights();
  for (const std::string& note : notes) notice(note);
  notice("weights loaded from " + config_.training.load);
}

Summary Run::train() {
  const int64_t last = config_.training.steps;
  if (origin_.first_step > last) {
    notice(fmt::format(
        "nothing to do: the run is at step {} of training.steps = {}; raise it to go on",
        origin_.first_step - 1, last));
    summary_.nothing_to_do = true;
    return summary_;
  }
  if (is_first_rank() && observer_.on_start) {
    observer_.on_start(config_, prediction_, origin_.first_step);
  }
  begin_trace();
  int64_t step = origin_.first_step;
  while (!train_one_step(step) && step < last) ++step;
  if (step < last) {
    summary_.stopped_early = true;
    save(step);
  }
  return summarise(step);
}

void Run::begin_trace() {
  if (!config_.profiling.trace) return;
  trace_ = std::make_unique<RunTrace>(folder_.trace(), *groups_);
  replica_->set_recorder(recorder());
  loader_->set_recorder(recorder());
}

bool Run::train_one_step(int64_t step) {
  if (trace_) trace_->begin_step(step);
  const Stopwatch clock;
  const AxisCounters before(*groups_);
  const StepResult result =
      step_->compute_gradients(*loader_, step, options_.stop != nullptr && options_.stop->load());
  step_->update(result);
  const double seconds = clock.seconds();
  busy_seconds_ += seconds;
  ++steps_done_;
  if (trace_) trace_->add_prediction(result);
  pipeline_times_->add_step(replica_->pipeline().actions(), result.bubble_fraction);

  StepRecord record = record_of(result, seconds);
  const AxisCounters after(*groups_);
  for (size_t axis = 0; axis < parallel::kNumAxes; ++axis) {
    sent_[axis] = after.sent[axis] - before.sent[axis];
    const double waited = after.waited[axis] - before.waited[axis];
    const double communicated = after.busy[axis] - before.busy[axis];
    waited_seconds_[axis] += waited;
    communication_seconds_[axis] += communicated;
    record.exposed_communication_s += waited;
    record.communication_s += communicated;
  }
  if (step == origin_.first_step) summary_.loss_first = result.loss;
  summary_.loss_last = result.loss;

  maybe_validate(step, record);
  if (is_first_rank()) {
    metrics_->write(record);
    if (events_) {
      events_->write(static_cast<double>(record.time_us) * 1e-6, step, to_scalars(record));
    }
    if (observer_.on_step) observer_.on_step(record);
  }
  const int64_t interval = config_.checkpoint.interval;
  if (step == config_.training.steps || (interval > 0 && step % interval == 0)) save(step);
  return result.stop;
}

/// What a step was like, but for its communication and its validation.
StepRecord Run::record_of(const StepResult& result, double seconds) const {
  StepRecord record;
  record.step = result.step;
  record.time_us = std::chrono::duration_cast<std::chrono::microseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  record.loss = result.loss;
  record.grad_norm = result.grad_norm;
  record.lr = result.lr;
  record.tokens = tokens_per_step();
  record.tokens_per_s = static_cast<double>(record.tokens) / seconds;
  record.tflops = rank_flops_per_s(seconds) * 1e-12;
  record.mfu = rank_flops_per_s(seconds) / product_flops_per_s_;
  record.step_s = seconds;
  record.memory_bytes = ledger_.peak_total();
  record.memory_limit_bytes = machine_memory_;
  return record;
}

void Run::maybe_validate(int64_t step, StepRecord& record) {
  const int64_t freq = config_.validation.freq;
  const bool last = step == config_.training.steps;
  if (!data_.validation || (!last && (freq == 0 || step % freq != 0))) return;
  const trace::Timed timed(recorder(), "validation", trace::Lane::host);
  const Stopwatch clock;
  const int64_t windows = config_.validation.steps * config_.training.global_batch_size;
  record.validation_loss =
      evaluate(*replica_, *data_.validation, windows, config_.training.micro_batch_size).loss;
  summary_.validation_loss = *record.validation_loss;
  summary_.has_validation = true;
  summary_.validation_seconds += clock.seconds();
}

void Run::save(int64_t step) {
  if (summary_.last_checkpoint == folder_.checkpoint(step).string()) return;
  const trace::Timed timed(recorder(), "checkpoint", trace::Lane::host);
  const Stopwatch clock;
  const CheckpointHeader header{step, config_.training.seed,
                                origin_.sample_of(step + 1, config_.training.global_batch_size),
                                formats::to_toml(config_), layout()};
  save_checkpoint(folder_.checkpoint(step), replica_->state(), *groups_, header);
  if (is_first_rank()) {
    prune_checkpoints(folder_.checkpoints(), config_.checkpoint.keep_latest_k, step);
  }
  summary_.last_checkpoint = folder_.checkpoint(step).string();
  summary_.checkpoint_seconds += clock.seconds();
}

Summary Run::summarise(int64_t last_step) {
  summary_.steps = last_step;
  summary_.unigram_entropy = data_.unigram_entropy;
  summary_.mesh = groups_->mesh();
  summary_.num_hosts = options_.num_hosts;
  summary_.layout = layout();
  summary_.backend = comm_.backend();
  summary_.device = kernels::describe_device();
  summary_.train_seconds = busy_seconds_;
  const double seconds_a_step = busy_seconds_ / static_cast<double>(steps_done_);
  summary_.tokens_per_s = static_cast<double>(tokens_per_step()) / seconds_a_step;
  summary_.tflops_per_rank = rank_flops_per_s(seconds_a_step) * 1e-12;
  summary_.mfu = rank_flops_per_s(seconds_a_step) / product_flops_per_s_;
  for (size_t axis = 0; axis < parallel::kNumAxes; ++axis) {
    summary_.exposed_communication_fraction[axis] = waited_seconds_[axis] / busy_seconds_;
    if (communication_seconds_[axis] <= 0) continue;
    // A wait is a little longer than what is waited for.
    summary_.hidden_communication_fraction[axis] =
        std::max(0.0, 1 - waited_seconds_[axis] / communication_seconds_[axis]);
  }
  summary_.bubble_measured = pipeline_times_->bubble_measured();
  summary_.bubble_simulated = pipeline_times_->bubble_simulated(comm_);
  summary_.predicted = prediction_;
  summarise_ranks();
  summary_.weights_hash = weights_hash(replica_->state(), *groups_);
  summary_.run_dir = folder_.root.string();
  agree(comm_, [&] {
    if (is_first_rank()) write_file_atomically(folder_.summary(), to_json(summary_) + "\n");
  });
  return summary_;
}

/// What differs between ranks, gathered.
void Run::summarise_ranks() {
  const auto ranks = static_cast<size_t>(comm_.size());
  CategoryBytes mine{};
  for (int i = 0; i < core::kNumCategories; ++i) {
    mine[static_cast<size_t>(i)] = ledger_.peak(static_cast<core::Category>(i));
  }
  summary_.memory_measured.resize(ranks);
  comm_.all_gather(
      View{summary_.memory_measured.data(), DType::i64, {comm_.size() * core::kNumCategories}},
      ConstView{mine.data(), DType::i64, {core::kNumCategories}});
  summary_.process_memory_bytes = gather(comm_, process_memory_bytes() - memory_before_);
  constexpr int64_t num_entries = std::size(comm::kTrafficEntries) * parallel::kNumAxes;
  static_assert(sizeof(AxisTraffic) == num_entries * sizeof(int64_t));
  summary_.traffic_measured.resize(ranks);
  comm_.all_gather(View{summary_.traffic_measured.data(), DType::i64, {comm_.size() * num_entries}},
                   ConstView{&sent_, DType::i64, {num_entries}});
}

}  // namespace

Summary train(const TrainOptions& options, comm::Communicator& comm, const Observer& observer) {
  return Run(options, comm, observer).train();
}

}  // namespace tessera::train
