#include "train/agreement.h"

#include <fmt/format.h>

#include <vector>

namespace tessera::train {

using core::ConstView;
using core::DType;
using core::View;

namespace {

constexpr int64_t kFine = 0, kConfigError = 1, kRunError = 2, kMemoryError = 3;

std::string broadcast_from(comm::Communicator& comm, const std::string& mine, int root) {
  int64_t length = static_cast<int64_t>(mine.size());
  comm.broadcast(View{&length, DType::i64, {1}}, root);
  std::string text = comm.rank() == root ? mine : std::string(static_cast<size_t>(length), ' ');
  comm.broadcast(View{text.data(), DType::u8, {length}}, root);
  return text;
}

}  // namespace

void agree(comm::Communicator& comm, const std::function<void()>& work) {
  int64_t status = kFine;
  std::string why;
  try {
    work();
  } catch (const core::CommError&) {
    throw;
  } catch (const core::ConfigError& error) {
    status = kConfigError;
    why = error.what();
  } catch (const core::MemoryError& error) {
    status = kMemoryError;
    why = error.what();
  } catch (const std::exception& error) {
    status = kRunError;
    why = error.what();
  }
  std::vector<int64_t> statuses(static_cast<size_t>(comm.size()));
  comm.all_gather(View{statuses.data(), DType::i64, {comm.size()}},
                  ConstView{&status, DType::i64, {1}});
  for (int rank = 0; rank < comm.size(); ++rank) {
    const int64_t theirs = statuses[static_cast<size_t>(rank)];
    if (theirs == kFine) continue;
    why = broadcast_from(comm, why, rank);
    if (comm.size() > 1) why = fmt::format("rank {}: {}", rank, why);
    if (theirs == kConfigError) throw AgreedConfigError(why);
    if (theirs == kMemoryError) throw AgreedMemoryError(why);
    throw AgreedRunError(why);
  }
}

std::string broadcast_string(comm::Communicator& comm, const std::string& from_rank0) {
  return broadcast_from(comm, from_rank0, 0);
}

}  // namespace tessera::train
