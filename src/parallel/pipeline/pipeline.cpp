#include "parallel/pipeline/pipeline.h"

#include <algorithm>
#include <deque>
#include <map>

#include "core/fault.h"
#include "core/rng.h"
#include "kernels/elementwise.h"

namespace tessera::parallel {

using spec::Action;
using spec::ActionKind;

model::Stage stage_of_chunk(const account::ParameterTable& table, int chunk) {
  model::Stage stage;
  for (size_t i = 0; i < table.units.size(); ++i) {
    const account::Unit& unit = table.units[i];
    if (unit.chunk != chunk || unit.tied_copy) continue;
    const int index = static_cast<int>(i);
    switch (unit.kind) {
      case account::UnitKind::embedding:
        stage.embedding = index;
        break;
      case account::UnitKind::block:
        if (stage.blocks.empty() && !TESSERA_FAULT("pp_layers_counted_by_stage")) {
          stage.first_layer = unit.layer;
        }
        stage.blocks.push_back(index);
        break;
      case account::UnitKind::head:
        stage.head = index;
        stage.tied = account::tied_unit(table);
        break;
    }
  }
  return stage;
}

Pipeline::Pipeline(const spec::RunConfig& config, const spec::Schedule& schedule,
                   MeshGroups& groups, const model::Parameters& parameters,
                   const model::LayerFactory& factory, StepHooks& hooks, core::MemoryLedger& ledger,
                   const ArenaBytes& expected)
    : config_(config),
      schedule_(schedule),
      rank_(groups.coordinate().pp),
      stages_(schedule_.stages_of(rank_)),
      stream_numbers_(groups.mesh().dp * groups.mesh().tp,
                      groups.coordinate().dp * groups.mesh().tp + groups.coordinate().tp),
      dtype_(spec::dtype_of(config.training.precision)),
      ledger_(ledger),
      slot_bytes_(expected.micro_batch) {
  if (config.parallelism.sequence_parallel) {
    stream_parts_ = config.parallelism.tensor_parallel_degree;
    stream_part_ = groups.coordinate().tp;
  }
  const auto num_chunks = static_cast<int>(stages_.size());
  chunks_.reserve(static_cast<size_t>(num_chunks));
  for (int chunk = 0; chunk < num_chunks; ++chunk) {
    chunks_.emplace_back(config.model, stage_of_chunk(parameters.table(), chunk), parameters,
                         factory, hooks,
                         model::TransformerOptions{dtype_, config.activation_checkpoint.mode});
  }
  if (schedule_.num_stages() == 1) {
    slots_.push_back(std::make_unique<Slot>(ledger, slot_bytes_));
    return;
  }
  scratch_ = std::make_unique<core::Arena>(ledger, core::Category::activations, expected.scratch);
  const int64_t elements = config.training.micro_batch_size * config.data.seq_len / stream_parts_ *
                           config.model.hidden_size;
  activations_ = std::make_unique<StreamExchange>(groups.pp_forward(), dtype_, elements, 2, ledger);
  gradients_ = std::make_unique<StreamExchange>(groups.pp_backward(), dtype_, elements,
                                                spec::buffers_to_send(schedule_), ledger);
}

model::LossResult Pipeline::train(const std::vector<model::MicroBatch>& batches,
                                  const StepPass& pass) {
  Work work{batches, pass, {}};
  beyond_range_ = 0;
  done_.clear();
  stream_numbers_.begin(schedule_);
  run(schedule_, work);
  return work.losses;
}

model::LossResult Pipeline::evaluate(const std::vector<model::MicroBatch>& batches,
                                     int64_t passes) {
  Work work{batches, {/*training=*/false, 1, 0}, {}};
  run(forward_schedule(passes), work);
  return work.losses;
}

spec::Schedule Pipeline::forward_schedule(int64_t passes) const {
  return spec::forward_only(schedule_, passes);
}

std::vector<account::ChunkPass> Pipeline::passes_of(const spec::Schedule& schedule) const {
  std::vector<account::ChunkPass> passes;
  for (const Action& action : schedule.ranks[static_cast<size_t>(rank_)]) {
    passes.push_back({action.kind, static_cast<int>(chunk_of(action.stage))});
  }
  return passes;
}

int64_t Pipeline::chunk_of(int64_t stage) const {
  return std::find(stages_.begin(), stages_.end(), stage) - stages_.begin();
}

void Pipeline::run(const spec::Schedule& schedule, Work& work) {
  if (!alone()) begin_exchange(schedule, work);
  const auto num_batches = static_cast<int64_t>(work.batches.size());
  for (const Action& action : schedule.ranks[static_cast<size_t>(rank_)]) {
    if (action.micro_batch >= num_batches) {
      skip(action, work.pass.training);
    } else if (action.kind == ActionKind::backward_weight) {
      backward_weight(action, work);
    } else if (action.kind != ActionKind::forward) {
      backward(action, work);
    } else if (work.pass.training) {
      forward(action, work);
    } else {
      evaluate_stage(action, work);
    }
  }
  if (alone()) return;
  activations_->finish();
  gradients_->finish();
}

void Pipeline::begin_exchange(const spec::Schedule& schedule, const Work& work) {
  const auto elements_of = [&](int64_t micro_batch) {
    return stream_shape(work.batches[static_cast<size_t>(micro_batch)]).elements();
  };
  using Arrivals = std::map<int, std::deque<StreamExchange::Arrival>>;
  Arrivals activations, gradients;
  for (int peer = 0; peer < schedule.num_ranks(); ++peer) {
    if (peer == rank_) continue;
    for (const Action& action : schedule.ranks[static_cast<size_t>(peer)]) {
      if (action.micro_batch >= static_cast<int64_t>(work.batches.size())) continue;
      const int64_t stage = schedule.stage_behind(action);
      if (stage < 0 || rank_of(stage) != rank_) continue;
      const bool forward = action.kind == ActionKind::forward;
      (forward ? activations : gradients)[peer].push_back(
          {{stage, action.micro_batch}, elements_of(action.micro_batch)});
    }
  }
  activations_->begin(std::move(activations));
  gradients_->begin(std::move(gradients));
}

void Pipeline::skip(const Action& action, bool training) {
  model::Transformer& stage = stage_at(action);
  switch (action.kind) {
    case ActionKind::forward:
      return stage.skip_forward(training);
    case ActionKind::backward:
      return stage.skip_backward();
    case ActionKind::backward_input:
      return stage.skip_backward_input();
    case ActionKind::backward_weight:
      return stage.skip_backward_weight();
  }
}

void Pipeline::forward(const Action& action, Work& work) {
  Slot& slot = claim_slot(action);
  model::Pass pass = make_pass(slot.arena, action, work);
  ConstView input;
  if (!is_first(action.stage)) {
    if (rank_of(action.stage - 1) == rank_) {
      input = slot_of(action.stage - 1, action.micro_batch).activations.output;
    } else {
      const View x = slot.arena.allocate(dtype_, stream_shape(pass.batch));
      activations_->take({action.stage, action.micro_batch}, x);
      input = x;
    }
  }
  timed(action, [&] {
    const model::LossResult result = stage_at(action).forward(pass, slot.activations, input);
    work.losses.loss_sum += result.loss_sum;
    work.losses.valid_tokens += result.valid_tokens;
  });
  if (pass.gradient_beyond_range) ++beyond_range_;
  if (is_last(action.stage) || rank_of(action.stage + 1) == rank_) return;
  activations_->send({action.stage + 1, action.micro_batch}, rank_of(action.stage + 1),
                     slot.activations.output);
}

void Pipeline::evaluate_stage(const Action& action, Work& work) {
  const core::Arena::Scope scope(scratch());
  model::Pass pass = make_pass(scratch(), action, work);
  View input, output;
  if (!is_first(action.stage)) {
    input = scratch().allocate(dtype_, stream_shape(pass.batch));
    activations_->take({action.stage, action.micro_batch}, input);
  }
  const StreamExchange::Key next{action.stage + 1, action.micro_batch};
  if (!is_last(action.stage)) {
    output = activations_->outgoing(next, rank_of(action.stage + 1), stream_shape(pass.batch));
  }
  model::Activations activations;
  const model::LossResult result = stage_at(action).forward(pass, activations, input, output);
  work.losses.loss_sum += result.loss_sum;
  work.losses.valid_tokens += result.valid_tokens;
  if (!is_last(action.stage)) activations_->send(next, rank_of(action.stage + 1));
}

void Pipeline::backward(const Action& action, Work& work) {
  Slot& slot = slot_of(action.stage, action.micro_batch);
  if (action.kind == ActionKind::backward_input) {
    return backward(action, work, slot, slot.arena);
  }
  {
    const core::Arena::Scope scope(scratch());
    backward(action, work, slot, scratch());
  }
  free_slot(slot);
}

void Pipeline::backward(const Action& action, Work& work, Slot& slot, core::Arena& arena) {
  model::Pass pass = make_pass(arena, action, work);
  View doutput, dinput;
  if (!is_last(action.stage)) {
    doutput = arena.allocate(dtype_, stream_shape(pass.batch));
    gradients_->take({action.stage, action.micro_batch}, doutput);
    if (TESSERA_FAULT("pp_scaled_stage")) kernels::scale(doutput, 1.01f);
  }
  const StreamExchange::Key before{action.stage - 1, action.micro_batch};
  if (!is_first(action.stage)) {
    dinput = gradients_->outgoing(before, rank_of(action.stage - 1), stream_shape(pass.batch));
  }
  timed(action, [&] {
    model::Transformer& stage = stage_at(action);
    if (action.kind == ActionKind::backward_input) {
      stage.backward_input(pass, slot.activations, dinput, doutput);
    } else {
      stage.backward(pass, slot.activations, dinput, doutput);
    }
  });
  if (pass.gradient_beyond_range) ++beyond_range_;
  if (!is_first(action.stage)) gradients_->send(before, rank_of(action.stage - 1));
}

void Pipeline::backward_weight(const Action& action, Work& work) {
  Slot& slot = slot_of(action.stage, action.micro_batch);
  model::Pass pass = make_pass(slot.arena, action, work);
  timed(action, [&] { stage_at(action).backward_weight(pass, slot.activations); });
  if (pass.gradient_beyond_range) ++beyond_range_;
  free_slot(slot);
}

model::Pass Pipeline::make_pass(core::Arena& kept, const Action& action, const Work& work) {
  const auto number = static_cast<size_t>(action.micro_batch);
  model::Pass pass(kept, scratch(), work.batches[number]);
  if (TESSERA_FAULT("pp_swapped_micro_batch") && action.stage > 0 && number > 0) {
    const model::MicroBatch& other = work.batches[number - 1];
    if (other.batch() == pass.batch.batch()) pass.batch = other;
  }
  pass.training = work.pass.training;
  pass.grad_scale = work.pass.grad_scale;
  pass.dropout_key = core::stream_key(config_.training.seed, core::Stream::dropout);
  pass.step = work.pass.step;
  pass.invariant = config_.training.numerics == spec::Numerics::invariant;
  pass.stream_parts = stream_parts_;
  pass.stream_part = stream_part_;
  return pass;
}

core::Shape Pipeline::stream_shape(const model::MicroBatch& batch) const {
  return {batch.batch(), batch.seq_len() / stream_parts_, config_.model.hidden_size};
}

Pipeline::Slot& Pipeline::claim_slot(const Action& action) {
  const auto is_free = [](const auto& slot) { return slot->stage == -1; };
  auto found = std::find_if(slots_.begin(), slots_.end(), is_free);
  if (found == slots_.end()) {
    slots_.push_back(std::make_unique<Slot>(ledger_, slot_bytes_));
    found = slots_.end() - 1;
  }
  (*found)->stage = action.stage;
  (*found)->micro_batch = action.micro_batch;
  return **found;
}

Pipeline::Slot& Pipeline::slot_of(int64_t stage, int64_t micro_batch) {
  const auto holds_it = [&](const auto& slot) {
    return slot->stage == stage && slot->micro_batch == micro_batch;
  };
  const auto found = std::find_if(slots_.begin(), slots_.end(), holds_it);
  CHECK(found != slots_.end(), "a backward without its forward");
  return **found;
}

void Pipeline::free_slot(Slot& slot) {
  if (!alone()) activations_->settle({slot.stage + 1, slot.micro_batch});
  slot.arena.release(slot.empty);
  slot.stage = -1;
}

template <class F>
void Pipeline::timed(const Action& action, const F& compute) {
  TimedAction done{action, trace::now_ns(), 0};
  compute();
  done.end_ns = trace::now_ns();
  done_.push_back(done);
  if (recorder_ == nullptr) return;
  trace::Span span = span_of(action, chunk_of(action.stage), done.begin_ns, done.end_ns);
  span.flow_in = stream_numbers_.read_by(action);
  span.flow_out = stream_numbers_.sent_by(action);
  recorder_->add(std::move(span));
}

}  // namespace tessera::parallel
