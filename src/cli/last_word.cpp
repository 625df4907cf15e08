#include "cli/last_word.h"

#include <poll.h>
#include <signal.h>

namespace tessera::cli {

void leave_rank_0_the_last_word(const train::RankEnvironment& environment, int status) {
  if (environment.rank == 0 || !environment.over_mpi() || status == 0 || status >= 128) return;
  signal(SIGTERM, SIG_DFL);
  constexpr int kPatienceMs = 3000;
  poll(nullptr, 0, kPatienceMs);
}

}  // namespace tessera::cli
