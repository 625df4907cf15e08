#pragma once

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

// What goes over the socket at which ranks meet: one packet each way, and a descriptor.

namespace tessera::comm {

/// Owns a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

/// What a rank says when it comes.
struct Hello {
  static constexpr uint64_t kMagic = 0x3172657373657431;  // changes with this protocol
  uint64_t magic = kMagic;
  int32_t rank = 0;
  int32_t size = 0;
  int64_t pid = 0;
  uint64_t start_time = 0;
  int64_t region_bytes = 0;
};

/// What it is told: welcome, with the file, or why not.
struct Answer {
  uint32_t welcome = 0;
  char why[1020] = {};
};

/// An abstract address: a zero byte, then a name that no file system knows. Any length will do.
sockaddr_un address_of(const std::string& name, socklen_t* length);

/// A socket that keeps packets apart. Throws CommError.
Descriptor make_socket();

/// Who is at the other end, by the kernel's word; a pid of 0 when it does not say.
ucred credentials_of(const Descriptor& connection);

/// Sends the answer, and the file with it when fd is not -1. Failure is silent: a peer that is gone
/// by now is noticed by its seat.
void answer(const Descriptor& connection, const Answer& text, int fd);

/// Receives an answer and its file, whatever signals come meanwhile; false when rank 0 has closed
/// the connection or is too late.
bool receive_answer(const Descriptor& connection, std::chrono::steady_clock::time_point deadline,
                    Answer* text, Descriptor* file);

}  // namespace tessera::comm
