#include <fmt/format.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>

#include "cli/byte_size.h"
#include "cli/comm_table.h"
#include "cli/last_word.h"
#include "cli/own_program.h"
#include "cli/verbs.h"
#include "core/error.h"
#include "train/environment.h"
#include "train/mpirun.h"
#include "train/process_memory.h"
#include "train/run_folder.h"
#include "train/supervisor.h"
#include "train/world.h"

// Where a launcher has made this process a rank, it is one; else this process starts ranks of its
// own, which execute the same command.

namespace tessera::cli {

namespace {

using comm::ReduceOp;
using core::ConfigError;
using core::DType;

struct Options {
  std::string min_bytes = "8";
  std::string max_bytes = "64M";
  std::string step_bytes;
  double step_factor = 2;
  std::string collective = "all_reduce";
  std::string op = "sum";
  std::string dtype = "float";
  int check = 1;
  comm::CollectiveBenchOptions bench;
  int num_ranks = 2;
  double timeout_seconds = 60;
  std::string backend = "auto";
  std::string links;
  bool json = false;
};

const std::map<std::string, DType>& dtypes() {
  static const std::map<std::string, DType> names = {
      {"float", DType::f32}, {"fp32", DType::f32},  {"double", DType::f64},
      {"fp64", DType::f64},  {"bf16", DType::bf16}, {"bfloat16", DType::bf16},
      {"int32", DType::i32}, {"int", DType::i32},   {"int64", DType::i64}};
  return names;
}

const std::map<std::string, spec::Backend>& backends() {
  static const std::map<std::string, spec::Backend> names = {
      {"auto", spec::Backend::automatic}, {"shm", spec::Backend::shm}, {"mpi", spec::Backend::mpi}};
  return names;
}

const std::map<std::string, ReduceOp>& operations() {
  static const std::map<std::string, ReduceOp> names = {{"sum", ReduceOp::sum},
                                                        {"avg", ReduceOp::average},
                                                        {"max", ReduceOp::max},
                                                        {"min", ReduceOp::min}};
  return names;
}

int64_t bytes_of(const std::string& flag, const std::string& text) {
  const auto bytes = parse_bytes(text);
  if (bytes) return *bytes;
  throw ConfigError(fmt::format(
      "{} {} is no size: a number of bytes, or one with K, M or G, as in 64M", flag, text));
}

/// From the smallest to the largest, by nccl-tests' two ways to step.
std::vector<int64_t> sizes_of(const Options& options) {
  const int64_t first = bytes_of("--minbytes", options.min_bytes);
  const int64_t last = bytes_of("--maxbytes", options.max_bytes);
  if (first > last) {
    throw ConfigError(fmt::format("--minbytes {} is more than --maxbytes {}", options.min_bytes,
                                  options.max_bytes));
  }
  if (!std::isfinite(options.step_factor)) throw ConfigError("--stepfactor is not a number");
  const int64_t add = options.step_bytes.empty() ? 0 : bytes_of("--stepbytes", options.step_bytes);
  constexpr size_t kMostSizes = 10000;
  std::vector<int64_t> sizes;
  for (int64_t size = first; size <= last;) {
    if (sizes.size() == kMostSizes) {
      throw ConfigError(fmt::format("more than {} sizes; choose a larger step", kMostSizes));
    }
    sizes.push_back(size);
    const double multiplied =
        std::min(static_cast<double>(size) * options.step_factor, static_cast<double>(last) + 1);
    size = add > 0 ? size + add : std::max(size + 1, static_cast<int64_t>(multiplied));
  }
  return sizes;
}

std::vector<comm::MeasuredKind> kinds_of(const std::string& name) {
  std::vector<comm::MeasuredKind> kinds;
  for (const comm::MeasuredKind& kind : comm::measured_kinds()) {
    if (name == "all" || name == kind.name) kinds.push_back(kind);
  }
  return kinds;
}

comm::CollectiveBenchOptions bench_options(const Options& options) {
  comm::CollectiveBenchOptions bench = options.bench;
  bench.dtype = dtypes().at(options.dtype);
  bench.op = operations().at(options.op);
  bench.check = options.check != 0;
  if (bench.op == ReduceOp::average && (bench.dtype == DType::i32 || bench.dtype == DType::i64)) {
    throw ConfigError(fmt::format(
        "--op avg of {}: integers have no average; choose sum, max or min", options.dtype));
  }
  return bench;
}

/// One core of those this process may use, where there is one for each rank of the host.
bool take_a_core(const train::RankEnvironment& environment) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return false;
  if (CPU_COUNT(&allowed) < environment.local_world_size) return CPU_COUNT(&allowed) == 1;
  int core = 0;
  for (int left = environment.local_rank; !CPU_ISSET(core, &allowed) || left-- > 0;) ++core;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  return sched_setaffinity(0, sizeof(one), &one) == 0;
}

void check_buffers_fit(const Options& options, int64_t largest, int ranks_on_host) {
  const int64_t bytes = (options.bench.copy ? 3 : 2) * largest * ranks_on_host;
  const int64_t machine = train::machine_memory_bytes();
  if (bytes <= machine) return;
  constexpr double kGiB = 1 << 30;
  throw core::MemoryError(fmt::format(
      "--maxbytes {} does not fit: the buffers of {} rank(s) take {:.1f} GiB, and this machine has "
      "{:.1f}",
      options.max_bytes, ranks_on_host, static_cast<double>(bytes) / kGiB,
      static_cast<double>(machine) / kGiB));
}

CommReport measure(const Options& options, const std::vector<int64_t>& sizes,
                   comm::Communicator& comm, bool pinned) {
  const bool prints = comm.rank() == 0 && !options.json;
  const auto print = [&](const std::string& text) {
    if (!prints) return;
    fmt::print("{}", text);
    std::fflush(stdout);
  };
  CommReport report{comm.size(), comm.backend(), pinned, bench_options(options), {}};
  comm::CollectiveBench bench(comm, sizes.back(), report.options);
  for (const comm::MeasuredKind& kind : kinds_of(options.collective)) {
    report.measurements.push_back({kind, {}});
    auto& times = report.measurements.back().times;
    print(table_head(report, kind));
    for (const int64_t size : sizes) {
      const comm::CollectiveTime time = bench.measure(kind, size);
      // Sizes of less than an element a rank are rounded up, the first of them to what was
      // measured.
      if (!times.empty() && times.back().bytes == time.bytes) continue;
      times.push_back(time);
      print(table_row(report, kind, time));
    }
  }
  print(table_end(report));
  return report;
}

void finish(const Options& options, const CommReport& report) {
  if (options.json) fmt::print("{}\n", to_json(report));
  const auto link = link_of(report);
  if (link && !options.json) {
    fmt::print("# link {}, {} ranks: latency {:.2f} us, {:.3f} GB/s (mean error {:.0f} %)\n",
               report.backend, report.ranks, link->latency_s * 1e6, link->bytes_per_s * 1e-9,
               100 * link->mean_error);
  }
  if (options.links.empty()) return;
  if (!link) {
    throw ConfigError(
        "--links: one size does not tell latency from rate; measure from small sizes to large "
        "ones, "
        "as with -b 8 -e 64M, and with two ranks or more");
  }
  train::write_file_atomically(options.links, links_file(report, *link));
}

int run_rank(const Options& options, const std::vector<int64_t>& sizes,
             const train::RankEnvironment& environment) {
  const bool pinned = take_a_core(environment);
  spec::RunConfig config;
  config.comm.timeout_seconds = options.timeout_seconds;
  config.comm.backend = backends().at(options.backend);
  train::World world(environment, config);
  comm::Communicator& comm = world.comm();
  try {
    const CommReport report = measure(options, sizes, comm, pinned);
    if (comm.rank() == 0) finish(options, report);
    world.leave();
    return report.wrong() == 0 ? kDone : kMismatch;
  } catch (const core::CommError&) {
    throw;
  } catch (const std::exception& error) {
    comm.abort(error.what());
    throw;
  }
}

/// The command of a rank of our own.
std::vector<std::string> rank_command(const Options& o) {
  std::vector<std::string> command = {own_program(), "bench", "comm"};
  const auto add = [&](const char* flag, const std::string& value) {
    command.insert(command.end(), {flag, value});
  };
  add("--minbytes", o.min_bytes);
  add("--maxbytes", o.max_bytes);
  if (!o.step_bytes.empty()) add("--stepbytes", o.step_bytes);
  add("--stepfactor", fmt::format("{}", o.step_factor));
  add("--iters", std::to_string(o.bench.iterations));
  add("--warmup_iters", std::to_string(o.bench.warmups));
  add("--op", o.op);
  add("--datatype", o.dtype);
  add("--root", std::to_string(o.bench.root));
  add("--collective", o.collective);
  add("--check", std::to_string(o.check));
  add("--backend", o.backend);
  add("--timeout", fmt::format("{}", o.timeout_seconds));
  if (!o.links.empty()) add("--links", o.links);
  if (o.bench.copy) command.push_back("--copy");
  if (o.json) command.push_back("--json");
  return command;
}

int run_own_ranks(const Options& options) {
  train::LaunchOptions launch_options;
  launch_options.ranks = {options.num_ranks, options.num_ranks};
  launch_options.command = rank_command(options);
  std::string said;
  const auto listen = [&](const std::string& line) { said += line + "\n"; };
  const train::LaunchOutcome outcome =
      backends().at(options.backend) == spec::Backend::mpi
          ? train::launch_with_mpirun(options.num_ranks, launch_options.command, listen)
          : train::launch(launch_options, listen);
  if (outcome.exit_status != kDone && outcome.exit_status < 128) {
    fmt::print(stderr, "{}", said);
  }
  return outcome.exit_status;
}

/// What the links file needs, before anything is measured for it.
void check_links(const Options& options, const std::vector<int64_t>& sizes, int ranks) {
  if (options.links.empty()) return;
  const std::filesystem::path path = std::filesystem::absolute(options.links);
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored) ||
      !std::filesystem::is_directory(path.parent_path(), ignored)) {
    throw ConfigError(fmt::format("--links {}: no file can be written there", options.links));
  }
  if (sizes.size() < 2 || ranks < 2) {
    throw ConfigError(
        "--links: one size, or one rank, does not tell latency from rate; measure from small sizes "
        "to large ones, as with -b 8 -e 64M, and with two ranks or more");
  }
}

int bench_comm(const Options& options, const train::RankEnvironment& environment) {
  const bool launched = !environment.rendezvous.empty();
  const int ranks = launched ? environment.world_size : options.num_ranks;
  const std::vector<int64_t> sizes = sizes_of(options);
  bench_options(options);
  check_links(options, sizes, ranks);
  if (options.bench.root >= ranks) {
    throw ConfigError(fmt::format("--root {} is none of the {} ranks; they count from 0",
                                  options.bench.root, ranks));
  }
  check_buffers_fit(options, sizes.back(), launched ? environment.local_world_size : ranks);
  if (launched || ranks == 1) return run_rank(options, sizes, environment);
  return run_own_ranks(options);
}

template <class Value>
CLI::IsMember names_of(const std::map<std::string, Value>& names) {
  std::vector<std::string> keys;
  for (const auto& [name, value] : names) keys.push_back(name);
  return CLI::IsMember(keys);
}

void add_sizes(CLI::App& verb, Options& options) {
  verb.add_option("-b,--minbytes", options.min_bytes, "The smallest size: 8, 4K, 64M, 1G")
      ->capture_default_str();
  verb.add_option("-e,--maxbytes", options.max_bytes, "The largest size")->capture_default_str();
  verb.add_option("-f,--stepfactor", options.step_factor, "From one size to the next")
      ->check(CLI::Range(1.01, 1e9))
      ->capture_default_str();
  verb.add_option("-i,--stepbytes", options.step_bytes, "Add so many bytes instead");
}

void add_work(CLI::App& verb, Options& options) {
  std::vector<std::string> collectives = {"all"};
  for (const comm::MeasuredKind& kind : comm::measured_kinds()) collectives.push_back(kind.name);
  verb.add_option("--collective", options.collective, "What to measure")
      ->check(CLI::IsMember(collectives))
      ->capture_default_str();
  verb.add_option("-o,--op", options.op, "Of reductions")
      ->check(names_of(operations()))
      ->capture_default_str();
  verb.add_option("-d,--datatype", options.dtype, "Of the elements")
      ->check(names_of(dtypes()))
      ->capture_default_str();
  verb.add_option("-r,--root", options.bench.root, "Of broadcast, gather and scatter")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb.add_option("-n,--iters", options.bench.iterations, "Timed; the median counts")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  verb.add_option("-w,--warmup-iters,--warmup_iters", options.bench.warmups, "Not timed")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  verb.add_option("-c,--check", options.check, "Verify every size before it is timed; 0: do not")
      ->check(CLI::Range(0, 1))
      ->capture_default_str();
  verb.add_flag(
      "--copy", options.bench.copy,
      "Also the speed as a share of a memory copy's, of the same size by all ranks at once");
}

}  // namespace

void add_bench_comm_action(CLI::App& bench_verb, int& status) {
  auto options = std::make_shared<Options>();
  CLI::App* verb = bench_verb.add_subcommand(
      "comm", "The collectives between ranks, as nccl-tests measures them");
  verb->footer(
      "Starts ranks of its own on this host, or is a rank where a launcher has started it: tessera "
      "launch, torchrun, mpirun. busbw is algbw times 2(n-1)/n for all_reduce, 1 for broadcast "
      "and sendrecv, (n-1)/n for the others. Exit status 4 when a value was wrong.");
  add_sizes(*verb, *options);
  add_work(*verb, *options);
  verb->add_option("--nproc-per-node,--nproc_per_node", options->num_ranks, "Ranks to start")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  verb->add_option("--backend", options->backend, "What carries messages, as comm.backend")
      ->check(names_of(backends()))
      ->capture_default_str();
  verb->add_option("--timeout", options->timeout_seconds, "Seconds that a wait may take")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  verb->add_option("--links", options->links,
                   "Write a file with the link that the times tell: latency and rate");
  verb->add_flag("--json", options->json, "Print one JSON object");
  verb->callback([options, &status] {
    const train::RankEnvironment environment = train::rank_environment();
    try {
      status = bench_comm(*options, environment);
    } catch (const core::ConfigError&) {
      if (environment.rank == 0) throw;  // one of the ranks tells what is wrong with the command
      status = kUsage;
    } catch (const core::MemoryError&) {
      if (environment.rank == 0) throw;
      status = kDoesNotFit;
    }
    leave_rank_0_the_last_word(environment, status);
  });
}

}  // namespace tessera::cli
