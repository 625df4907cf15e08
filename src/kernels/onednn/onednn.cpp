#include "kernels/onednn/onednn.h"

#include <omp.h>

#include <algorithm>
#include <dnnl.hpp>
#include <unordered_map>

#include "core/error.h"

// The one file that includes oneDNN, and so the one where its generations differ: 2.x describes an
// operation (matmul::desc) before the primitive descriptor, 3.x builds the latter directly.

namespace tessera::kernels::onednn {
namespace {

dnnl::memory::data_type type_of(core::DType dtype) {
  CHECK(dtype == core::DType::f32 || dtype == core::DType::bf16, "not a product dtype of oneDNN");
  return dtype == core::DType::bf16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

/// A rows × columns matrix, or the transpose of one that is stored as columns × rows.
dnnl::memory::desc matrix(int64_t rows, int64_t columns, core::DType dtype, int64_t stride,
                          bool transposed) {
  return {{rows, columns},
          type_of(dtype),
          transposed ? dnnl::memory::dims{1, stride} : dnnl::memory::dims{stride, 1}};
}

const dnnl::engine& engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::matmul::primitive_desc describe(const Product& p) {
  const auto a = matrix(p.m, p.k, p.operands, p.lda, p.transpose_a);
  const auto b = matrix(p.k, p.n, p.operands, p.ldb, p.transpose_b);
  const auto c = matrix(p.m, p.n, p.result, p.ldc, false);
  dnnl::primitive_attr attributes;
  if (p.accumulate) {
    dnnl::post_ops then;
    then.append_sum(1.0f);
    attributes.set_post_ops(then);
  }
  const auto bias = p.has_bias ? matrix(1, p.n, p.bias, p.n, false) : dnnl::memory::desc();
#if DNNL_VERSION_MAJOR >= 3
  if (p.has_bias) return {engine(), a, b, bias, c, attributes};
  return {engine(), a, b, c, attributes};
#else
  if (p.has_bias) return {dnnl::matmul::desc(a, b, bias, c), attributes, engine()};
  return {dnnl::matmul::desc(a, b, c), attributes, engine()};
#endif
}

/// A compiled product, and the memory objects it is run with: only their pointers change.
struct Compiled {
  explicit Compiled(const Product& product) : Compiled(product, describe(product)) {}

  void run(dnnl::stream& stream, const ProductPointers& pointers) {
    a.set_data_handle(const_cast<void*>(pointers.a));
    b.set_data_handle(const_cast<void*>(pointers.b));
    c.set_data_handle(pointers.c);
    if (pointers.bias != nullptr) bias.set_data_handle(const_cast<void*>(pointers.bias));
    primitive.execute(stream, arguments);
    stream.wait();
  }

 private:
  Compiled(const Product& product, const dnnl::matmul::primitive_desc& described)
      : primitive(described),
        a(described.src_desc(), engine(), nullptr),
        b(described.weights_desc(), engine(), nullptr),
        c(described.dst_desc(), engine(), nullptr) {
    arguments = {{DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, c}};
    if (product.has_bias) {
      bias = dnnl::memory(matrix(1, product.n, product.bias, product.n, false), engine(), nullptr);
      arguments.emplace(DNNL_ARG_BIAS, bias);
    }
  }

  dnnl::matmul primitive;
  dnnl::memory a, b, c, bias;
  std::unordered_map<int, dnnl::memory> arguments;
};

struct Key {
  Product product;
  int threads;
  friend bool operator==(const Key&, const Key&) = default;
};

struct KeyHash {
  size_t operator()(const Key& key) const {
    const Product& p = key.product;
    const auto flags = (p.transpose_a ? 1 : 0) + (p.transpose_b ? 2 : 0) + (p.accumulate ? 4 : 0) +
                       (p.has_bias ? 8 : 0);
    uint64_t hash = 0;
    for (const int64_t part :
         {p.m, p.n, p.k, p.lda, p.ldb, p.ldc, static_cast<int64_t>(flags),
          static_cast<int64_t>(p.operands) * 256 + static_cast<int64_t>(p.result) * 16 +
              static_cast<int64_t>(p.bias),
          static_cast<int64_t>(key.threads)}) {
      hash = (hash ^ static_cast<uint64_t>(part)) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 32;
    }
    return hash;
  }
};

/// More than the shapes of several models; when generation at growing lengths fills it, it starts
/// afresh rather than keep books of what was used last.
constexpr size_t kMostCompiled = 512;

/// A thread's compiled products. Compiling takes milliseconds, so they are kept; per thread, since
/// ranks may be threads, a stream and the memory objects serve one thread at a time, and what is
/// compiled depends on the thread's team size.
struct Cache {
  dnnl::stream stream{engine()};
  std::unordered_map<Key, Compiled, KeyHash> compiled;
};

void multiply_at_once(const Product& product, const ProductPointers& pointers) {
  thread_local Cache cache;
  const Key key{product, omp_get_max_threads()};
  auto found = cache.compiled.find(key);
  if (found == cache.compiled.end()) {
    if (cache.compiled.size() >= kMostCompiled) cache.compiled.clear();
    found = cache.compiled.emplace(key, Compiled(product)).first;
  }
  found->second.run(cache.stream, pointers);
}

constexpr int64_t kCopyBytes = int64_t{16} << 20;
constexpr int64_t kVector = 64;

/// oneDNN keeps an fp32 copy of a bf16 result that it adds to: twice the memory of the gradient of
/// an embedding. Such a product is taken in blocks of rows, which keep the copy within 16 MiB.
int64_t rows_at_a_time(const Product& p) {
  if (p.result != core::DType::bf16 || !p.accumulate || 4 * p.m * p.n <= kCopyBytes) return p.m;
  return std::max(kCopyBytes / 2 / (4 * p.n) / kVector, int64_t{1}) * kVector;
}

/// oneDNN keeps fp32 copies of a bf16 result whose rows are not dense, one a thread: for a chunk of
/// logits more memory than the logits. Such a product is taken in blocks of columns, which keep the
/// copies within 16 MiB and cost no time.
int64_t columns_at_a_time(const Product& p) {
  if (p.result != core::DType::bf16 || p.ldc == p.n) return p.n;
  const int64_t column_bytes = p.m * 4 * omp_get_max_threads();
  return std::max(kCopyBytes / column_bytes / kVector, int64_t{1}) * kVector;
}

const void* advanced(const void* data, int64_t elements, core::DType dtype) {
  return data == nullptr ? nullptr
                         : static_cast<const std::byte*>(data) + elements * core::size_of(dtype);
}

void multiply_columns(const Product& product, const ProductPointers& pointers) {
  const int64_t block = columns_at_a_time(product);
  for (int64_t first = 0; first < product.n; first += block) {
    Product part = product;
    part.n = std::min(block, product.n - first);
    const int64_t b_offset = product.transpose_b ? first * product.ldb : first;
    multiply_at_once(part, {const_cast<void*>(advanced(pointers.c, first, product.result)),
                            pointers.a, advanced(pointers.b, b_offset, product.operands),
                            advanced(pointers.bias, first, product.bias)});
  }
}

}  // namespace

std::string version() {
  const dnnl_version_t* linked = dnnl_version();
  return std::to_string(linked->major) + "." + std::to_string(linked->minor) + "." +
         std::to_string(linked->patch);
}

void hold_to_avx2() {
  dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
}

void multiply(const Product& product, const ProductPointers& pointers) {
  try {
    const int64_t block = rows_at_a_time(product);
    for (int64_t first = 0; first < product.m; first += block) {
      Product part = product;
      part.m = std::min(block, product.m - first);
      const int64_t a_offset = product.transpose_a ? first : first * product.lda;
      const void* c = advanced(pointers.c, first * product.ldc, product.result);
      multiply_columns(
          part, {const_cast<void*>(c), advanced(pointers.a, a_offset, product.operands), pointers.b,
                 pointers.bias});
    }
  } catch (const dnnl::error& error) {
    throw core::RunError("oneDNN cannot multiply " + std::to_string(product.m) + " x " +
                         std::to_string(product.k) + " by " + std::to_string(product.k) + " x " +
                         std::to_string(product.n) + " (" + core::name_of(product.operands) +
                         "): " + error.what());
  }
}

}  // namespace tessera::kernels::onednn
