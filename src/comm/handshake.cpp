#include "comm/handshake.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "core/error.h"

namespace tessera::comm {

using core::CommError;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {

int poll_timeout(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now());
  return static_cast<int>(std::max<int64_t>(0, left.count()));
}

// Calls again while a signal handler interrupts the call.
template <class Call>
auto retry(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

}  // namespace

sockaddr_un address_of(const std::string& name, socklen_t* length) {
  std::string full = fmt::format("tessera-{}-{}", geteuid(), name);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  constexpr size_t kMost = sizeof(address.sun_path) - 1;
  if (full.size() > kMost) {
    uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (const char c : full) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    full = full.substr(0, kMost - 17) + fmt::format("-{:016x}", hash);
  }
  std::memcpy(address.sun_path + 1, full.data(), full.size());
  *length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + full.size());
  return address;
}

Descriptor make_socket() {
  Descriptor made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!made) throw CommError(fmt::format("cannot make a Unix socket: {}", std::strerror(errno)));
  return made;
}

ucred credentials_of(const Descriptor& connection) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (getsockopt(connection.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) peer.pid = 0;
  return peer;
}

void answer(const Descriptor& connection, const Answer& text, int fd) {
  iovec data{const_cast<Answer*>(&text), sizeof(text)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
  }
  sendmsg(connection.get(), &message, MSG_NOSIGNAL);
}

bool receive_answer(const Descriptor& connection, Clock::time_point deadline, Answer* text,
                    Descriptor* file) {
  pollfd readable{connection.get(), POLLIN, 0};
  if (retry([&] { return poll(&readable, 1, poll_timeout(deadline)); }) != 1) return false;
  iovec data{text, sizeof(*text)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t length =
      retry([&] { return recvmsg(connection.get(), &message, MSG_CMSG_CLOEXEC); });
  if (length != sizeof(*text)) return false;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof(int));
    *file = Descriptor(fd);
  }
  return true;
}

}  // namespace tessera::comm
