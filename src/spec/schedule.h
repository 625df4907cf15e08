#pragma once

// A pipeline's schedule as data: what each rank does, in which order. The executor carries it out
// (parallel/pipeline), account says what it takes, a checker looks for what is wrong with it.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "spec/run_config.h"

namespace tessera::spec {

/// A micro-batch's way through a stage. A backward is one action, or two: the gradient of the
/// stage's input, for which the stage before waits, and that of its weights, for which nobody does.
enum class ActionKind : uint8_t { forward, backward, backward_input, backward_weight };

struct Action {
  ActionKind kind = ActionKind::forward;
  int64_t stage = 0;
  int64_t micro_batch = 0;

  bool operator==(const Action&) const = default;
};
/// F, B, I or W.
constexpr char letter_of(ActionKind kind) {
  return "FBIW"[static_cast<size_t>(kind)];
}
/// As PyTorch writes it: stage, letter, micro-batch: "1F3".
std::string to_string(const Action& action);

/// Stage s hands its output to stage s + 1. A rank may have several stages, its chunks.
struct Schedule {
  int64_t num_micro_batches = 0;
  std::vector<std::vector<Action>> ranks;  ///< what each does, in order
  std::vector<int64_t> rank_of_stage;

  int64_t num_ranks() const { return static_cast<int64_t>(ranks.size()); }
  int64_t num_stages() const { return static_cast<int64_t>(rank_of_stage.size()); }
  /// Ascending.
  std::vector<int64_t> stages_of(int64_t rank) const;
  /// The stage that takes what the action makes of the stream: of a forward the next one, of a
  /// backward the one before; -1: none. And the stage whose stream the action needs; -1: none.
  int64_t stage_behind(const Action& action) const;
  int64_t stage_needed(const Action& action) const;
};

enum class ScheduleKind : uint8_t { gpipe, one_f_one_b, interleaved, zb_h1, zb_v, csv };
/// "gpipe", "1f1b", "interleaved", "zb-h1", "zb-v"; a file's name is csv if it ends so. Others:
/// none.
std::optional<ScheduleKind> schedule_kind(std::string_view name);
/// The five that have one; csv: "csv".
std::string_view schedule_name(ScheduleKind kind);
constexpr std::array<ScheduleKind, 5> kNamedSchedules = {
    ScheduleKind::gpipe, ScheduleKind::one_f_one_b, ScheduleKind::interleaved, ScheduleKind::zb_h1,
    ScheduleKind::zb_v};
/// The schedule of that name that was probably meant, or all there are.
std::string nearest_schedules(std::string_view name);

/// Chunks that a rank has where nobody says more: of interleaved, which takes any number, and zb_v,
/// which takes no other, two; of the others one, and no other but with csv.
int64_t usual_chunks(ScheduleKind kind);
bool takes_chunks(ScheduleKind kind, int64_t chunks_per_rank);

/// `kind` takes the chunks, and is not csv.
///
/// All but zb_v deal the stages out in turn: stage s is on rank s % num_ranks. One rank has one
/// stage and does forward, backward, forward, …, whatever the kind. Every schedule is complete and
/// runs to its end with any number of micro-batches, if not as well with fewer than ranks.
Schedule make_schedule(ScheduleKind kind, int64_t num_ranks, int64_t chunks_per_rank,
                       int64_t num_micro_batches);
/// The schedule of a resolved config's training step.
Schedule schedule_of(const RunConfig& config);
/// That of schedule_of, without making the actions.
std::vector<int64_t> rank_of_stage(const RunConfig& config);
/// Of an evaluation of so many micro-batches in the same placement: forward alone, on every rank
/// chunk by chunk for as many micro-batches as there are ranks, then the next so many. Two buffers
/// to send from are enough for it.
Schedule forward_only(const Schedule& training, int64_t num_micro_batches);

/// Everything that is wrong with a schedule, one line each; empty: it can be carried out, and does
/// each micro-batch once. Actions that are missing, doubled or of no stage or micro-batch, stages
/// on no rank or on several, a backward before what it needs, and ranks that wait for each other
/// for ever. Of two stages in a row on one rank the second reads the first one's output where it
/// lies, to the end of its backward: that of the first must not end before. `training`: every
/// forward has its backward.
std::vector<std::string> mistakes(const Schedule& schedule, bool training = true);

/// Micro-batches, each in one chunk, between their forward and the end of their backward on this
/// rank at once, at most.
int64_t peak_in_flight(const Schedule& schedule, int64_t rank);

/// Messages to other ranks that a rank may have on their way at once, in either direction; 0: any
/// number.
struct SendBuffers {
  int64_t activations = 0;
  int64_t gradients = 0;
};
/// How many of its actions each rank gets through, if a receiver takes the messages of a peer in
/// the order in which they are sent, one ahead of its need, and a message that finds no buffer
/// waits until the oldest on its way has been received. All of them, if no rank waits for ever.
std::vector<int64_t> actions_done(const Schedule& schedule, const SendBuffers& buffers);
/// The least number of buffers, two or more, for gradients on their way with which no rank waits
/// for ever; those of activations are any number.
int64_t buffers_to_send(const Schedule& schedule);

/// A schedule, or what is wrong with the text, each with its row and column from 1.
struct ParsedSchedule {
  Schedule schedule;
  std::vector<std::string> errors;
};
/// PyTorch's CSV (torch.distributed.pipelining, _dump_csv): a row a rank, a cell an action; an
/// empty one is a bubble. Cells of communication (SEND_F, RECV_B, UNSHARD, …) are left out: here it
/// follows from the actions. A schedule that comes out may still have mistakes().
ParsedSchedule parse_schedule(std::string_view text);

}  // namespace tessera::spec
