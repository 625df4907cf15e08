#include "train/exact.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "comm/partition.h"
#include "train/cores.h"
#include "train/exact_matrix.h"
#include "train/thread_ranks.h"

// Bounds. A sum of k products in any two orders differs by at most 2 k u times the sum of their
// magnitudes (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, 3.1), u = 2^-53; a
// few roundings more for what is done to the sum afterwards. Where nothing is summed, nothing may
// differ.

namespace tessera::train {

namespace {

using comm::Communicator;
using comm::Range;
using kernels::ReduceOp;

constexpr double kUnit = 0x1p-53;
constexpr double kVisible = 1e-3;  ///< values are of order 1: so much is no rounding

/// Of sums of `terms` products whose magnitudes add up to `magnitude`, in two orders.
double rounding(int64_t terms, double magnitude) {
  return 2.0 * static_cast<double>(terms + 4) * kUnit * magnitude;
}

double product_rounding(const Matrix& a, const Matrix& b) {
  return rounding(a.columns, largest(product(magnitudes(a), magnitudes(b))));
}

/// What `comm`'s rank has of `length`.
Range mine(const Communicator& comm, int64_t length) {
  return comm::chunk_of(length, comm.size(), comm.rank());
}

Matrix all_reduced(Communicator& comm, Matrix part, ReduceOp op = ReduceOp::sum) {
  comm.all_reduce(part.view(), op);
  return part;
}

/// All ranks' columns, side by side in the order of the ranks.
Matrix all_gathered(Communicator& comm, const Matrix& part) {
  Matrix blocks(comm.size() * part.rows, part.columns);
  comm.all_gather(blocks.view(), part.view());
  Matrix whole(part.rows, comm.size() * part.columns);
  for (int64_t i = 0; i < whole.rows; ++i) {
    for (int64_t j = 0; j < whole.columns; ++j) {
      whole.at(i, j) = blocks.at(j / part.columns * part.rows + i, j % part.columns);
    }
  }
  return whole;
}

void on_ranks(int num_ranks, const std::function<void(Communicator&)>& work) {
  comm::CommOptions options;
  options.usable_cores = usable_cores();
  options.staging_bytes = int64_t{1} << 20;  // small matrices: the memory takes longer to make
  run_thread_ranks({num_ranks, num_ranks}, options, work);
}

/// Fills in what the ranks' results are off from `whole`, which one rank computes.
Demonstration measured(Demonstration about, const Matrix& whole,
                       const std::function<Matrix(Communicator&)>& result_of) {
  std::vector<double> errors(kExactRanks);
  std::vector<int64_t> bytes(kExactRanks);
  on_ranks(kExactRanks, [&](Communicator& comm) {
    const Matrix result = result_of(comm);
    const auto rank = static_cast<size_t>(comm.rank());
    bytes[rank] = comm.traffic().total();
    errors[rank] = difference(result, whole);
  });
  for (size_t rank = 0; rank < errors.size(); ++rank) {
    if (!(errors[rank] <= about.error)) about.error = errors[rank];
    about.bytes += bytes[rank];
  }
  return about;
}

// Gradients: y = XW, the loss the mean over examples of |y - t|². A gradient's 45 numbers do not
// divide by the ranks.

struct Regression {
  Matrix x, w, t;

  Regression(uint64_t seed, int64_t examples)
      : x(drawn(seed, 1, examples, 15)), w(drawn(seed, 2, 15, 3)), t(drawn(seed, 3, examples, 3)) {}

  /// dloss/dy of `examples` alone, but for the factor 2 / count.
  Matrix residual(Range examples) const {
    Matrix r = product(rows_of(x, examples), w);
    const Matrix target = rows_of(t, examples);
    for (size_t i = 0; i < r.values.size(); ++i) r.values[i] -= target.values[i];
    return r;
  }
  /// dloss/dW, the mean over `examples` alone.
  Matrix gradient(Range examples) const {
    return scaled(transposed_product(rows_of(x, examples), residual(examples)),
                  2.0 / static_cast<double>(examples.count));
  }
  Matrix whole_gradient() const { return gradient({0, x.rows}); }
  double bound() const {
    const Matrix terms = transposed_product(magnitudes(x), magnitudes(residual({0, x.rows})));
    return rounding(x.rows, 2.0 / static_cast<double>(x.rows) * largest(terms));
  }
};

void add_gradients(uint64_t seed, std::vector<Demonstration>& list) {
  const Regression equal(seed, 64), uneven(seed, 60);
  list.push_back(measured(
      {"equal_shards",
       "64 examples on 8 ranks: the mean of the gradients of equal shards is the gradient of the "
       "whole batch. Only the order of a sum differs.",
       Expected::equal, 0, equal.bound()},
      equal.whole_gradient(), [&](Communicator& comm) {
        return all_reduced(comm, equal.gradient(mine(comm, 64)), ReduceOp::average);
      }));
  list.push_back(measured(
      {"uneven_shards_plain",
       "60 examples on 8 ranks, four with 8 and four with 7: the plain mean of the shards' means "
       "gives examples of short shards more weight, and is wrong.",
       Expected::wrong, 0, kVisible},
      uneven.whole_gradient(), [&](Communicator& comm) {
        return all_reduced(comm, uneven.gradient(mine(comm, 60)), ReduceOp::average);
      }));
  list.push_back(measured(
      {"uneven_shards_weighted",
       "The same 60 examples, each shard's mean weighted by its examples: the gradient of the "
       "whole batch again.",
       Expected::equal, 0, uneven.bound()},
      uneven.whole_gradient(), [&](Communicator& comm) {
        const Range shard = mine(comm, 60);
        const double weight = static_cast<double>(shard.count) / 60.0;
        return all_reduced(comm, scaled(uneven.gradient(shard), weight));
      }));
}

// Products: Y = XW, W cut over ranks.

void add_products(uint64_t seed, std::vector<Demonstration>& list) {
  const Matrix x = drawn(seed, 4, 16, 128), w = drawn(seed, 5, 128, 256);
  const Matrix whole = product(x, w);
  list.push_back(
      measured({"column_split",
                "Each rank has columns of W and computes columns of XW, every element from the "
                "same terms in the same order: no sum is divided, so no bit differs.",
                Expected::equal, 0, 0},
               whole, [&](Communicator& comm) {
                 return all_gathered(comm, product(x, columns_of(w, mine(comm, w.columns))));
               }));
  list.push_back(measured(
      {"row_split",
       "Each rank has rows of W and the columns of X that meet them: its product is a summand of "
       "XW, and an all-reduce adds these up. Every sum is taken in another order.",
       Expected::equal, 0, product_rounding(x, w)},
      whole, [&](Communicator& comm) {
        const Range part = mine(comm, w.rows);
        return all_reduced(comm, product(columns_of(x, part), rows_of(w, part)));
      }));
}

// An MLP: Y = gelu(XA) B, both weights cut over ranks.

struct Mlp {
  Matrix x, a, b;

  explicit Mlp(uint64_t seed)
      : x(drawn(seed, 6, 16, 64)),
        a(scaled(drawn(seed, 7, 64, 256), 0.25)),
        b(scaled(drawn(seed, 8, 256, 64), 0.5)) {}

  Matrix hidden() const { return gelu(product(x, a)); }
  Matrix whole() const { return product(hidden(), b); }
  Matrix partial_hidden(const Communicator& comm) const {
    const Range part = mine(comm, a.rows);
    return product(columns_of(x, part), rows_of(a, part));
  }
  Matrix my_columns_of_b(const Communicator& comm) const {
    return columns_of(b, mine(comm, b.columns));
  }
  /// Where the hidden values come from sums in another order: GELU enlarges a difference by less
  /// than 1.13, and B's columns add them up.
  double bound_through_gelu() const {
    const Matrix ones(1, b.rows, std::vector<double>(static_cast<size_t>(b.rows), 1.0));
    const double column_sum = largest(product(ones, magnitudes(b)));
    return 1.13 * product_rounding(x, a) * column_sum + product_rounding(hidden(), b);
  }
};

void add_mlps(uint64_t seed, std::vector<Demonstration>& list) {
  const Mlp mlp(seed);
  list.push_back(measured(
      {"mlp_columns_then_rows",
       "gelu(XA) B with A by columns and B by rows: a rank's hidden columns are just those that "
       "its rows of B meet, and GELU looks at one element at a time. One all-reduce at the end, "
       "nothing in between.",
       Expected::equal, 0, product_rounding(mlp.hidden(), mlp.b)},
      mlp.whole(), [&](Communicator& comm) {
        const Range part = mine(comm, mlp.a.columns);
        const Matrix hidden = gelu(product(mlp.x, columns_of(mlp.a, part)));
        return all_reduced(comm, product(hidden, rows_of(mlp.b, part)));
      }));
  list.push_back(measured(
      {"mlp_rows_then_columns",
       "The other way round, A by rows and B by columns, with nothing in between: a rank's hidden "
       "values are summands, GELU of a summand is not a summand of GELU, and the result is wrong.",
       Expected::wrong, 0, kVisible},
      mlp.whole(), [&](Communicator& comm) {
        return all_gathered(comm,
                            product(gelu(mlp.partial_hidden(comm)), mlp.my_columns_of_b(comm)));
      }));
  list.push_back(measured(
      {"mlp_rows_then_columns_exchanged",
       "The same with an all-reduce of the hidden values before GELU: right, for one exchange more "
       "than columns first.",
       Expected::equal, 0, mlp.bound_through_gelu()},
      mlp.whole(), [&](Communicator& comm) {
        const Matrix hidden = gelu(all_reduced(comm, mlp.partial_hidden(comm)));
        return all_gathered(comm, product(hidden, mlp.my_columns_of_b(comm)));
      }));
}

/// RMSNorm of columns that are cut over ranks: each rank's mean of squares, averaged over ranks.
Matrix exchanged_norm(Communicator& comm, Matrix part) {
  Matrix square(part.rows, 1);
  for (int64_t i = 0; i < part.rows; ++i) {
    for (int64_t j = 0; j < part.columns; ++j) square.at(i, 0) += part.at(i, j) * part.at(i, j);
    square.at(i, 0) /= static_cast<double>(part.columns);
  }
  square = all_reduced(comm, std::move(square), ReduceOp::average);
  for (int64_t i = 0; i < part.rows; ++i) {
    const double rstd = 1.0 / std::sqrt(square.at(i, 0) + static_cast<double>(kNormEps));
    for (int64_t j = 0; j < part.columns; ++j) part.at(i, j) *= rstd;
  }
  return part;
}

void add_norms(uint64_t seed, std::vector<Demonstration>& list) {
  const Matrix x = drawn(seed, 9, 16, 256);
  const Matrix whole = rms_norm(x);
  list.push_back(measured(
      {"norm_over_split",
       "RMSNorm over a dimension that is cut over ranks, each rank dividing by the mean of its own "
       "squares: no element-wise function, so without an exchange it is wrong.",
       Expected::wrong, 0, kVisible},
      whole, [&](Communicator& comm) {
        return all_gathered(comm, rms_norm(columns_of(x, mine(comm, x.columns))));
      }));
  list.push_back(measured({"norm_over_split_exchanged",
                           "The same with an all-reduce of one mean of squares a row: right.",
                           Expected::equal, 0, rounding(x.columns, largest(whole))},
                          whole, [&](Communicator& comm) {
                            return all_gathered(
                                comm, exchanged_norm(comm, columns_of(x, mine(comm, x.columns))));
                          }));
}

WorkedExample worked_example() {
  constexpr int kTwo = 2;
  const Matrix x(1, 2, {1, 2}), w(2, 4, {1, 0, 2, 1, 0, 1, 1, 3});
  WorkedExample result{x.values, w.values, product(x, w).values, {}, {}, {}, {}};
  result.by_columns.resize(kTwo);
  result.by_rows.resize(kTwo);
  on_ranks(kTwo, [&](Communicator& comm) {
    const Range columns = mine(comm, w.columns), rows = mine(comm, w.rows);
    const Matrix part = product(x, columns_of(w, columns));
    const Matrix summand = product(columns_of(x, rows), rows_of(w, rows));
    const Matrix joined = all_gathered(comm, part), summed = all_reduced(comm, summand);
    result.by_columns[static_cast<size_t>(comm.rank())] = part.values;
    result.by_rows[static_cast<size_t>(comm.rank())] = summand.values;
    if (comm.rank() != 0) return;
    result.joined = joined.values;
    result.summed = summed.values;
  });
  return result;
}

}  // namespace

bool ExactReport::as_expected() const {
  return worked.joined == worked.whole && worked.summed == worked.whole &&
         std::ranges::all_of(demonstrations, &Demonstration::as_expected);
}

ExactReport demonstrate_exactness(uint64_t seed) {
  ExactReport report;
  report.worked = worked_example();
  add_gradients(seed, report.demonstrations);
  add_products(seed, report.demonstrations);
  add_mlps(seed, report.demonstrations);
  add_norms(seed, report.demonstrations);
  return report;
}

}  // namespace tessera::train
