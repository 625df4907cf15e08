#pragma once

#include <string>

// What this processor offers, and what was chosen. Read once; TESSERA_ISA=ref|avx2|avx512 lowers
// it.

namespace tessera::kernels {

enum class Isa { ref, avx2, avx512 };

/// The widest instruction set that the processor has and TESSERA_ISA allows.
Isa isa();

/// Lowers isa() for the calling thread while it lives, so that one process can hold the
/// implementations of an operation against each other. Never raises it. Scopes nest.
class IsaLimit {
 public:
  explicit IsaLimit(Isa most);
  ~IsaLimit();
  IsaLimit(const IsaLimit&) = delete;
  IsaLimit& operator=(const IsaLimit&) = delete;

 private:
  Isa before_;
};

/// For people: "avx512, bf16 products native (oneDNN 2.6.3), 2 threads".
std::string describe_device();

/// True when oneDNN multiplies bf16 here faster than fp32 (AVX-512 BF16 or AMX).
bool has_native_bf16();

/// Threads of the calling thread's OpenMP team; and how to set it (for the calling thread only).
int num_threads();
void set_num_threads(int count);

}  // namespace tessera::kernels
