#include "train/unit_bench.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include "core/arena.h"
#include "kernels/adamw.h"
#include "kernels/device.h"
#include "kernels/elementwise.h"
#include "kernels/exact_squares.h"
#include "kernels/random.h"
#include "model/lora.h"
#include "model/transformer.h"
#include "optim/optimizer.h"
#include "parallel/model_state.h"
#include "train/clock.h"
#include "train/train_step.h"

namespace tessera::train {

namespace {

using account::UnitKind;
using core::Category;
using core::Tensor;
using core::View;

/// Blocks in a row, so that what one left in the caches is gone before it is used again, as in a
/// whole model.
constexpr int64_t kBlocks = 8;

/// A model of a few of the config's units on one rank.
spec::RunConfig part_config(const spec::RunConfig& config) {
  spec::RunConfig part = config;
  part.model = account::tensor_part(config);
  part.model.num_hidden_layers = std::min(part.model.num_hidden_layers, kBlocks);
  return part;
}

model::Stage stage_of(const account::ParameterTable& table, UnitKind kind) {
  model::Stage stage;
  for (size_t i = 0; i < table.units.size(); ++i) {
    if (table.units[i].kind != kind) continue;
    const int unit = static_cast<int>(i);
    if (kind == UnitKind::embedding) stage.embedding = unit;
    if (kind == UnitKind::block) stage.blocks.push_back(unit);
    if (kind == UnitKind::head) stage.head = unit, stage.tied = account::tied_unit(table);
  }
  return stage;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The mean over the ranks.
double over_ranks(comm::Communicator& comm, double seconds) {
  comm.all_reduce(View{&seconds, core::DType::f64, {1}}, comm::ReduceOp::sum);
  return seconds / comm.size();
}

/// Calls `once` until the effort has been made, beginning together with the other ranks each time;
/// the first call is left out.
void repeat(comm::Communicator& comm, const BenchEffort& effort,
            const std::function<void(bool counts)>& once) {
  constexpr int kMost = 1000;  // of what takes microseconds
  once(false);
  const Stopwatch total;
  for (int done = 0;; ++done) {
    // One rank's clock for all: they do the same number of calls.
    int64_t goes_on =
        done < effort.repetitions || (done < kMost && total.seconds() < effort.seconds) ? 1 : 0;
    comm.broadcast(View{&goes_on, core::DType::i64, {1}}, 0);
    if (goes_on == 0) return;
    comm.barrier();
    once(true);
  }
}

class UnitBench {
 public:
  UnitBench(const spec::RunConfig& config, UnitKind kind, int64_t batch,
            const data::Dataset& dataset);
  account::UnitTimes measure(comm::Communicator& comm, const BenchEffort& effort);

 private:
  core::Shape stream_shape() const { return {batch_.batch, batch_.seq_len, width_}; }
  model::Pass pass();
  /// Forward and backward, in one or in two halves; notes what they took.
  void go_through(bool halves, bool counts);
  void measure_stream(comm::Communicator& comm, const BenchEffort& effort,
                      account::UnitTimes& times);

  UnitKind kind_;
  spec::RunConfig config_;  // of the part
  account::ParameterTable table_;
  core::MemoryLedger ledger_;
  parallel::ModelState state_;
  model::DenseFactory dense_;
  model::LoraFactory factory_;
  model::UnitHooks no_hooks_;
  core::DType dtype_;
  int64_t width_;
  data::Batch batch_;
  Tensor input_, dinput_, gradient_, doutput_;  // streams, [B, T, C]
  core::Arena arena_;
  model::Transformer transformer_;
  std::vector<double> forward_, backward_, backward_input_, backward_weight_;
};

UnitBench::UnitBench(const spec::RunConfig& config, UnitKind kind, int64_t batch,
                     const data::Dataset& dataset)
    : kind_(kind),
      config_(part_config(config)),
      table_(account::parameter_table(config_.model, config_.lora)),
      state_(table_, config_.training, /*for_training=*/true, ledger_),
      factory_(dense_, spec::lora_scale(config_.lora)),
      dtype_(spec::dtype_of(config_.training.precision)),
      width_(config_.model.hidden_size),
      arena_(ledger_, Category::activations, 0),
      transformer_(config_.model, stage_of(table_, kind), state_.parameters(), factory_, no_hooks_,
                   {dtype_, config_.activation_checkpoint.mode}) {
  std::vector<int64_t> windows(static_cast<size_t>(batch));
  std::iota(windows.begin(), windows.end(), int64_t{0});
  for (int64_t& window : windows) window %= dataset.num_windows();
  batch_ = dataset.read(windows);
  // A tensor-parallel rank has a part of the vocabulary.
  const auto vocabulary = static_cast<int32_t>(config_.model.vocab_size);
  for (int32_t& id : batch_.inputs) id %= vocabulary;
  for (int32_t& id : batch_.labels) id = id < 0 ? id : id % vocabulary;
  state_.initialise(config_.training.seed);
  for (Tensor* stream : {&input_, &dinput_, &gradient_, &doutput_}) {
    *stream = Tensor(ledger_, Category::activations, dtype_, stream_shape());
  }
  const Tensor noise(ledger_, Category::activations, core::DType::f32, stream_shape());
  kernels::fill_normal(noise.view(), config_.training.seed, 0, 0, 1);
  kernels::cast(input_.view(), noise.view());
  kernels::cast(gradient_.view(), noise.view());
}

model::Pass UnitBench::pass() {
  model::Pass pass(arena_, as_micro_batch(batch_));
  pass.grad_scale = 1.0f / static_cast<float>(batch_.inputs.size());
  pass.invariant = config_.training.numerics == spec::Numerics::invariant;
  return pass;
}

void UnitBench::go_through(bool halves, bool counts) {
  const core::Arena::Scope scope(arena_);
  model::Activations activations;
  const bool first = kind_ == UnitKind::embedding, last = kind_ == UnitKind::head;
  const View input = first ? View{} : input_.view(), dinput = first ? View{} : dinput_.view();
  const View doutput = last ? View{} : doutput_.view();
  kernels::cast(doutput_.view(), gradient_.view());  // a backward overwrites it
  model::Pass pass = this->pass();
  const auto note = [&](std::vector<double>& of, const std::function<void()>& call) {
    const Stopwatch clock;
    call();
    if (counts) of.push_back(clock.seconds());
  };
  note(forward_, [&] { transformer_.forward(pass, activations, input); });
  if (halves) {
    note(backward_input_, [&] { transformer_.backward_input(pass, activations, dinput, doutput); });
    note(backward_weight_, [&] { transformer_.backward_weight(pass, activations); });
  } else {
    note(backward_, [&] { transformer_.backward(pass, activations, dinput, doutput); });
  }
}

account::UnitTimes UnitBench::measure(comm::Communicator& comm, const BenchEffort& effort) {
  for (const bool halves : {false, true}) {
    repeat(comm, effort, [&](bool counts) { go_through(halves, counts); });
  }
  const double units =
      kind_ == UnitKind::block ? static_cast<double>(config_.model.num_hidden_layers) : 1;
  const auto of = [&](const std::vector<double>& seconds) {
    return over_ranks(comm, median(seconds)) / units;
  };
  account::UnitTimes times;
  times.kind = kind_;
  times.forward_s = of(forward_);
  times.backward_s = of(backward_);
  times.backward_input_s = of(backward_input_);
  times.backward_weight_s = of(backward_weight_);
  if (kind_ == UnitKind::block) measure_stream(comm, effort, times);
  return times;
}

/// The two norms and the two sums of a block.
void UnitBench::measure_stream(comm::Communicator& comm, const BenchEffort& effort,
                               account::UnitTimes& times) {
  const auto norm = dense_.norm(
      state_.parameters(), {stage_of(table_, UnitKind::block).blocks.front(),
                            account::Role::input_norm_weight, account::Role::input_norm_bias,
                            config_.model.norm_eps, model::norm_kind(config_.model.architecture)});
  const core::Shape rows{batch_.batch * batch_.seq_len, width_};
  const View x{input_.view().data, dtype_, rows}, y{doutput_.view().data, dtype_, rows};
  const View dx{dinput_.view().data, dtype_, rows}, dy{gradient_.view().data, dtype_, rows};
  std::vector<double> forward, backward;
  repeat(comm, effort, [&](bool counts) {
    const core::Arena::Scope scope(arena_);
    model::Pass pass = this->pass();
    model::NormSaved saved;
    Stopwatch clock;
    norm->forward(pass, y, x, saved);
    kernels::add(y, y, x);
    if (counts) forward.push_back(clock.seconds());
    clock.restart();
    norm->backward_input(pass, dx, dy, dy, x, saved);
    norm->backward_weight(pass, dy, x, saved);
    if (counts) backward.push_back(clock.seconds());
  });
  times.stream_forward_s = 2 * over_ranks(comm, median(forward));
  times.stream_backward_s = 2 * over_ranks(comm, median(backward));
}

/// The state of a rank as its optimizer and its gradient buffers see it.
class StateBench {
 public:
  StateBench(const spec::RunConfig& config, int64_t elements);
  account::StateTimes measure(comm::Communicator& comm, const BenchEffort& effort);

 private:
  void add_squares();

  core::MemoryLedger ledger_;
  int64_t elements_;
  Tensor weights_, master_, m_, v_, gradients_, copy_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  double squares_ = 0;
  int64_t step_ = 0;
};

StateBench::StateBench(const spec::RunConfig& config, int64_t elements) : elements_(elements) {
  const auto tensor = [&](Category category, core::DType dtype) {
    return Tensor(ledger_, category, dtype, {elements});
  };
  const core::DType dtype = spec::dtype_of(config.training.precision);
  const core::DType gradient = spec::gradient_storage(config.training);
  weights_ = tensor(Category::weights, dtype);
  gradients_ = tensor(Category::gradients, gradient);
  copy_ = tensor(Category::gradients, gradient);
  m_ = tensor(Category::optimizer, core::DType::f32);
  v_ = tensor(Category::optimizer, core::DType::f32);
  if (dtype != core::DType::f32) master_ = tensor(Category::optimizer, core::DType::f32);
  optim::ParameterRange range;
  range.weight = weights_.view();
  range.master = master_ ? master_.view() : weights_.view();
  range.m = m_.view();
  range.v = v_.view();
  range.grad = gradients_.view();
  range.decay = true;
  optimizer_ = optim::make_adamw({range}, optim::AdamwConfig{});
}

void StateBench::add_squares() {
  if (gradients_.view().dtype == core::DType::i64) {
    kernels::SquareDigits digits{};
    kernels::add_squares(digits, gradients_.view());
    squares_ += kernels::from_square_digits(digits);
  } else {
    squares_ += kernels::sum_of_squares(gradients_.view());
  }
}

account::StateTimes StateBench::measure(comm::Communicator& comm, const BenchEffort& effort) {
  account::StateTimes times;
  const auto an_element = [&](const std::function<void()>& call) {
    std::vector<double> seconds;
    repeat(comm, effort, [&](bool counts) {
      const Stopwatch clock;
      call();
      if (counts) seconds.push_back(clock.seconds());
    });
    return over_ranks(comm, median(seconds)) / static_cast<double>(elements_);
  };
  const auto bytes = static_cast<size_t>(gradients_.view().bytes());
  times.copy_s = an_element([&] { std::memcpy(copy_.view().data, gradients_.view().data, bytes); });
  times.zero_s = an_element([&] { kernels::zero(gradients_.view()); });
  times.norm_s = an_element([&] { add_squares(); });
  times.optimizer_s = an_element([&] { optimizer_->step(++step_, 1e-4, 1); });
  return times;
}

/// How many are at work while something is timed.
account::Company company_of(const comm::Communicator& comm) {
  return {comm.size(), kernels::num_threads()};
}

}  // namespace

account::UnitTimes bench_unit(const spec::RunConfig& config, UnitKind kind, int64_t batch,
                              const data::Dataset& dataset, comm::Communicator& comm,
                              const BenchEffort& effort) {
  account::UnitTimes times = UnitBench(config, kind, batch, dataset).measure(comm, effort);
  times.shape = account::unit_shape(config, kind, batch);
  times.company = company_of(comm);
  return times;
}

account::StateTimes bench_state(const spec::RunConfig& config, int64_t elements,
                                comm::Communicator& comm, const BenchEffort& effort) {
  account::StateTimes times = StateBench(config, elements).measure(comm, effort);
  times.shape = account::state_shape(config.training);
  times.company = company_of(comm);
  return times;
}

}  // namespace tessera::train
