// Where this build has no Open MPI: one clear line instead.

#include "comm/mpi/world.h"
#include "core/error.h"

namespace tessera::comm {

struct MpiWorld::Library {};
struct MpiPort::Transfers {};

bool MpiWorld::built_in() {
  return false;
}

std::string MpiWorld::library() {
  return "this build has no Open MPI: install the packages libopenmpi-dev and openmpi-bin (on "
         "Debian: apt-get install libopenmpi-dev openmpi-bin), then build again from an empty "
         "build folder";
}

std::shared_ptr<MpiWorld> MpiWorld::join() {
  throw core::ConfigError(library());
}

// Nothing below is ever called: there is no world to call it on.
MpiWorld::MpiWorld(std::unique_ptr<Library> library) : library_(std::move(library)) {}
MpiWorld::~MpiWorld() = default;
int MpiWorld::rank() const {
  return 0;
}
int MpiWorld::size() const {
  return 1;
}
int MpiWorld::propose_group() {
  return 0;
}
void MpiWorld::adopt_group(int) {}
bool MpiWorld::leave(std::chrono::milliseconds) {
  return true;
}
MpiPort::MpiPort(std::shared_ptr<MpiWorld> world, std::vector<int> ranks, int)
    : world_(std::move(world)), ranks_(std::move(ranks)), first_tag_(0) {}
MpiPort::~MpiPort() = default;
MpiPort::Slot MpiPort::send(int, int, const void*, int64_t) {
  return 0;
}
MpiPort::Slot MpiPort::recv(int, int, void*, int64_t) {
  return 0;
}
void MpiPort::post(int, int, const void*, int64_t) {}
bool MpiPort::poll() {
  return false;
}
bool MpiPort::done(Slot) const {
  return false;
}
int64_t MpiPort::take(Slot) {
  return 0;
}
void MpiPort::give_up() {}
bool MpiPort::posted_all_sent() {
  return true;
}

}  // namespace tessera::comm
