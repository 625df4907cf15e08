#include "comm/collective_bench.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "trace/recorder.h"

// Verification. Rank r's argument holds small whole numbers, drawn by r and place, so that sums are
// exact in every type (bf16 holds whole numbers to 256), and a value that comes from another rank,
// or from another place, is as good as always another number. What must come out is added up here
// rank by rank, in double.

namespace tessera::comm {

namespace {

using core::DType;

double one(int) {
  return 1;
}
double share(int n) {
  return (n - 1.0) / n;
}
double twice_share(int n) {
  return 2.0 * (n - 1) / n;
}
int one_hop(int) {
  return 1;
}
int ring(int n) {
  return n - 1;
}
int two_rings(int n) {
  return 2 * (n - 1);
}

constexpr MeasuredKind kKinds[] = {
    {Measured::all_reduce, "all_reduce", true, false, false, false, twice_share, two_rings},
    {Measured::all_gather, "all_gather", false, false, false, true, share, ring},
    {Measured::reduce_scatter, "reduce_scatter", true, false, true, false, share, ring},
    {Measured::all_to_all, "alltoall", false, false, true, true, share, ring},
    {Measured::broadcast, "broadcast", false, true, false, false, one, one_hop},
    {Measured::gather, "gather", false, true, false, true, share, ring},
    {Measured::scatter, "scatter", false, true, true, false, share, ring},
    {Measured::send_recv, "sendrecv", false, false, false, false, one, one_hop},
};

constexpr int64_t kPeriod = 1021;  // a prime: no share of a power of two begins with the same value

/// What rank `rank` has in place `i`.
double value_of(int rank, int64_t i) {
  uint64_t x =
      static_cast<uint64_t>(rank) * 0x9e3779b97f4a7c15u + static_cast<uint64_t>(i % kPeriod);
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9u;
  return static_cast<double>((x >> 40) & 15);
}

double reduced(int size, int64_t i, ReduceOp op) {
  double result = value_of(0, i);
  for (int rank = 1; rank < size; ++rank) {
    const double value = value_of(rank, i);
    if (op == ReduceOp::max) {
      result = std::max(result, value);
    } else if (op == ReduceOp::min) {
      result = std::min(result, value);
    } else {
      result += value;
    }
  }
  return op == ReduceOp::average ? result / size : result;
}

/// One period of a formula of the place, as a table.
using Values = std::vector<double>;
template <class Formula>
Values table(const Formula& formula) {
  Values values(kPeriod);
  for (int64_t i = 0; i < kPeriod; ++i) values[static_cast<size_t>(i)] = formula(i);
  return values;
}
Values values_of(int rank) {
  return table([&](int64_t i) { return value_of(rank, i); });
}
double at(const Values& values, int64_t i) {
  return values[static_cast<size_t>(i % kPeriod)];
}

template <class T>
T as(double value) {
  if constexpr (std::is_same_v<T, core::bf16>) {
    return core::bf16(static_cast<float>(value));
  } else {
    return static_cast<T>(value);
  }
}
template <class T>
double as_double(T value) {
  if constexpr (std::is_same_v<T, core::bf16>) {
    return static_cast<float>(value);
  } else {
    return static_cast<double>(value);
  }
}

/// Calls body with a value of the element type.
template <class Body>
auto with_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::f64:
      return body(double{});
    case DType::bf16:
      return body(core::bf16{});
    case DType::i64:
      return body(int64_t{});
    case DType::i32:
      return body(int32_t{});
    default:
      CHECK(dtype == DType::f32, "a type that collectives add up");
      return body(float{});
  }
}

/// Half a unit in the last place: an average is rounded, everything else is exact.
double rounding(DType dtype) {
  if (dtype == DType::bf16) return std::ldexp(1.0, -8);
  return dtype == DType::f64 ? std::ldexp(1.0, -52) : std::ldexp(1.0, -23);
}

void fill(View view, const Values& values) {
  with_type(view.dtype, [&](auto zero) {
    using T = decltype(zero);
    T* data = static_cast<T*>(view.data);
    for (int64_t i = 0; i < view.elements(); ++i) data[i] = as<T>(at(values, i));
  });
}

/// Elements [begin, begin + count) of view that are not values[first], values[first + 1] …
int64_t count_wrong(View view, int64_t begin, int64_t count, const Values& values, int64_t first,
                    double tolerance) {
  return with_type(view.dtype, [&](auto zero) {
    using T = decltype(zero);
    const T* data = static_cast<const T*>(view.data) + begin;
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; ++i) {
      const double expected = at(values, first + i);
      // The other way round, a NaN would pass.
      if (!(std::abs(as_double(data[i]) - expected) <= tolerance * expected)) ++wrong;
    }
    return wrong;
  });
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double seconds_of(int64_t times, const std::function<void()>& body) {
  const int64_t begin = trace::now_ns();
  for (int64_t i = 0; i < times; ++i) body();
  return static_cast<double>(trace::now_ns() - begin) * 1e-9 / static_cast<double>(times);
}

}  // namespace

std::span<const MeasuredKind> measured_kinds() {
  return kKinds;
}

/// Of a call: `in` is what is sent, where the operation does not work in place on `out`.
struct CollectiveBench::Arguments {
  View out, in;
  int64_t bytes = 0;
  int64_t count = 0;
};

CollectiveBench::CollectiveBench(Communicator& comm, int64_t max_bytes,
                                 const CollectiveBenchOptions& options)
    : comm_(comm), options_(options), max_bytes_(max_bytes) {
  // Never less than an element of every rank.
  max_bytes_ = std::max(max_bytes_, comm.size() * core::size_of(options.dtype));
  const auto size = static_cast<size_t>(max_bytes_);
  in_ = std::make_unique<std::byte[]>(size);
  out_ = std::make_unique<std::byte[]>(size);
  if (options.copy) copy_ = std::make_unique<std::byte[]>(size);
}

CollectiveBench::~CollectiveBench() = default;

CollectiveBench::Arguments CollectiveBench::arguments(const MeasuredKind& kind, int64_t bytes) {
  const int64_t parts = kind.whole_in || kind.whole_out ? comm_.size() : 1;
  const int64_t size = core::size_of(options_.dtype);
  const int64_t count = std::max<int64_t>(1, bytes / (parts * size));
  Arguments arguments;
  arguments.count = count;
  arguments.bytes = count * parts * size;
  CHECK(arguments.bytes <= max_bytes_, "a size within the buffers");
  arguments.in = {in_.get(), options_.dtype, {kind.whole_in ? count * parts : count}};
  arguments.out = {out_.get(), options_.dtype, {kind.whole_out ? count * parts : count}};
  return arguments;
}

void CollectiveBench::call(const MeasuredKind& kind, const Arguments& arguments) {
  const int n = comm_.size();
  switch (kind.what) {
    case Measured::all_reduce:
      return comm_.all_reduce(arguments.out, options_.op);
    case Measured::all_gather:
      return comm_.all_gather(arguments.out, arguments.in);
    case Measured::reduce_scatter:
      return comm_.reduce_scatter(arguments.out, arguments.in, options_.op);
    case Measured::all_to_all:
      return comm_.all_to_all(arguments.out, arguments.in);
    case Measured::broadcast:
      return comm_.broadcast(arguments.out, options_.root);
    case Measured::gather:
      return comm_.gather(arguments.out, arguments.in, options_.root);
    case Measured::scatter:
      return comm_.scatter(arguments.out, arguments.in, options_.root);
    case Measured::send_recv: {
      if (n == 1) return;
      Handle received = comm_.start(Call::recv(arguments.out, (comm_.rank() + n - 1) % n));
      comm_.send(arguments.in, (comm_.rank() + 1) % n);
      return received.wait();
    }
  }
}

/// Values of this rank's result that are not what they should be.
int64_t CollectiveBench::wrong_values(const MeasuredKind& kind, const Arguments& arguments) const {
  const int n = comm_.size();
  const int rank = comm_.rank();
  const int64_t count = arguments.count;
  if (kind.what == Measured::gather && rank != options_.root) return 0;
  // Where in the argument of those it comes from a result begins.
  const int64_t first = kind.whole_in ? rank * count : 0;
  if (kind.reduces) {
    const double tolerance = options_.op == ReduceOp::average ? rounding(options_.dtype) : 0;
    const Values sums = table([&](int64_t i) { return reduced(n, i, options_.op); });
    return count_wrong(arguments.out, 0, count, sums, first, tolerance);
  }
  if (!kind.whole_out) {
    const int from = kind.rooted ? options_.root : (rank + n - 1) % n;
    return count_wrong(arguments.out, 0, count, values_of(from), first, 0);
  }
  int64_t wrong = 0;
  for (int from = 0; from < n; ++from) {
    wrong += count_wrong(arguments.out, from * count, count, values_of(from), first, 0);
  }
  return wrong;
}

/// Values of all ranks that are wrong after a call. Leaves zeros: sums of sums would overflow.
int64_t CollectiveBench::verify(const MeasuredKind& kind, const Arguments& arguments) {
  const int n = comm_.size();
  const bool in_place = kind.what == Measured::all_reduce || kind.what == Measured::broadcast;
  const bool alone = n == 1 && kind.what == Measured::send_recv;  // nobody to send to
  const Values mine = values_of(comm_.rank());
  fill(arguments.in, mine);
  // Where a result is expected, there are other values before.
  fill(arguments.out, in_place || alone ? mine : table([](int64_t) { return 99.0; }));
  call(kind, arguments);
  const int64_t wrong = wrong_values(kind, arguments);
  std::vector<int64_t> everywhere(static_cast<size_t>(n));
  comm_.all_gather(View{everywhere.data(), DType::i64, {n}}, ConstView{&wrong, DType::i64, {1}});
  std::memset(in_.get(), 0, static_cast<size_t>(arguments.in.bytes()));
  std::memset(out_.get(), 0, static_cast<size_t>(arguments.out.bytes()));
  return std::accumulate(everywhere.begin(), everywhere.end(), int64_t{0});
}

// What ranks have to agree on is gathered: a sum that goes wrong is what is being looked for.
double CollectiveBench::slowest(double seconds) {
  std::vector<double> everywhere(static_cast<size_t>(comm_.size()));
  comm_.all_gather(View{everywhere.data(), DType::f64, {comm_.size()}},
                   View{&seconds, DType::f64, {1}});
  return *std::max_element(everywhere.begin(), everywhere.end());
}

/// As many calls as make a millisecond, by the warm-up.
int64_t CollectiveBench::calls_of_an_iteration(const MeasuredKind& kind,
                                               const Arguments& arguments) {
  const auto once = [&] { call(kind, arguments); };
  comm_.barrier();
  seconds_of(options_.warmups, once);
  const double seconds = slowest(seconds_of(1, once));
  return std::clamp<int64_t>(std::llround(1e-3 / std::max(seconds, 1e-9)), 1, 2000);
}

CollectiveTime CollectiveBench::measure(const MeasuredKind& kind, int64_t bytes) {
  const Arguments arguments = this->arguments(kind, bytes);
  CollectiveTime time;
  time.bytes = arguments.bytes;
  time.count = arguments.count;
  if (options_.check) time.wrong = verify(kind, arguments);
  const int64_t calls = calls_of_an_iteration(kind, arguments);
  std::vector<double> seconds, ratios;
  for (int i = 0; i < options_.iterations; ++i) {
    double copied = 0;
    if (copy_) {
      comm_.barrier();
      copied = seconds_of(
          calls, [&] { std::memcpy(out_.get(), copy_.get(), static_cast<size_t>(time.bytes)); });
    }
    comm_.barrier();
    seconds.push_back(slowest(seconds_of(calls, [&] { call(kind, arguments); })));
    if (copy_) ratios.push_back(slowest(copied) / seconds.back());
  }
  time.seconds = median(seconds);
  if (copy_) time.of_copy = median(ratios);
  time.algbw = static_cast<double>(time.bytes) / time.seconds;
  time.busbw = time.algbw * kind.bus(comm_.size());
  return time;
}

}  // namespace tessera::comm
