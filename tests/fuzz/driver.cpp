// The main() of a target where libFuzzer is not to be had.
//
//   fuzz_NAME [--seed K] [--iterations N | --seconds S]    damages seeds; tells what failed
//   fuzz_NAME --seed K --only N                            that input again, and writes it
//   fuzz_NAME FILE ...                                     these inputs
//
// Input number N is a function of the seed and N alone: any failure comes back by its numbers.

#include "driver.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <random>

namespace tessera::fuzz {
namespace {

struct Options {
  uint64_t seed = 1;
  uint64_t iterations = 10'000;
  double seconds = 0;  // when not 0, in place of iterations
  bool only = false;
  uint64_t number = 0;
  std::vector<std::string> files;
};

Options g_options;
volatile uint64_t g_number = 0;  // of the input that is running

/// Changes an input at random.
class Mutator {
 public:
  Mutator(const std::vector<std::string>& seed_inputs, const std::vector<std::string>& words,
          uint64_t seed)
      : seeds_(seed_inputs), words_(words), random_(seed) {}

  std::string input() {
    std::string text = seeds_[draw(seeds_.size())];
    // One change in a good input finds what many in a bad one hide.
    const size_t changes = size_t{1} << draw(3);
    for (size_t change = draw(changes) + 1; change > 0; --change) mutate(text);
    return text;
  }

 private:
  size_t draw(size_t below) { return below == 0 ? 0 : static_cast<size_t>(random_() % below); }

  void mutate(std::string& text) {
    const size_t at = draw(text.size() + 1);
    const size_t rest = text.size() - at;
    switch (draw(10)) {
      case 0:
        return flip_bit(text, at);
      case 1:
        text.insert(at, 1, static_cast<char>(random_()));
        return;
      case 2:
        text.erase(at, draw(std::min<size_t>(rest, 64) + 1));
        return;
      case 3:
        text.resize(at);
        return;
      case 4:
        return integer(text, at);
      case 5:
        return number(text, at);
      case 6:
        return word(text, at);
      case 7:
        return repeat(text, at);
      case 8:
        return splice(text, at);
      default:
        return head(text);
    }
  }

  void flip_bit(std::string& text, size_t at) {
    if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << draw(8)));
  }
  /// A binary integer becomes one at the edge of something.
  void integer(std::string& text, size_t at) {
    static constexpr uint64_t kEdges[] = {0,
                                          1,
                                          2,
                                          7,
                                          8,
                                          0x7F,
                                          0x80,
                                          0xFF,
                                          0x7FFF,
                                          0x8000,
                                          0xFFFF,
                                          0x7FFFFFFF,
                                          0x80000000,
                                          0xFFFFFFFF,
                                          uint64_t{1} << 33,
                                          uint64_t{1} << 62,
                                          ~uint64_t{0} >> 1,
                                          ~uint64_t{0},
                                          uint64_t{1} << 63};
    const size_t bytes = size_t{1} << draw(4);
    if (text.size() - at < bytes) return;
    uint64_t value = kEdges[draw(std::size(kEdges))];
    if (draw(3) == 0) {
      uint64_t old = 0;
      std::memcpy(&old, text.data() + at, bytes);
      value = old + draw(9) - 4;
    }
    std::memcpy(text.data() + at, &value, bytes);
  }
  /// A number written out becomes another.
  void number(std::string& text, size_t at) {
    static constexpr const char* kNumbers[] = {"0",
                                               "-1",
                                               "1",
                                               "2147483648",
                                               "4294967296",
                                               "1e400",
                                               "9223372036854775807",
                                               "18446744073709551616",
                                               "1.5",
                                               "-0",
                                               "null",
                                               "true",
                                               "\"\"",
                                               "[]",
                                               "{}"};
    const auto is_digit = [&](size_t i) { return text[i] >= '0' && text[i] <= '9'; };
    while (at < text.size() && !is_digit(at)) ++at;
    size_t end = at;
    while (end < text.size() && is_digit(end)) ++end;
    if (end > at) text.replace(at, end - at, kNumbers[draw(std::size(kNumbers))]);
  }
  void word(std::string& text, size_t at) {
    if (words_.empty()) return;
    const std::string& piece = words_[draw(words_.size())];
    text.replace(at, draw(2) == 0 ? 0 : std::min(piece.size(), text.size() - at), piece);
  }
  void repeat(std::string& text, size_t at) {
    const std::string piece = text.substr(at, draw(40));
    text.insert(at, piece);
    if (draw(20) == 0) {
      for (size_t i = draw(200); i > 0; --i) text.insert(at, piece);
    }
  }
  void splice(std::string& text, size_t at) {
    const std::string& other = seeds_[draw(seeds_.size())];
    text = text.substr(0, at) + other.substr(draw(other.size() + 1));
  }
  /// Headers count for more than what follows.
  void head(std::string& text) {
    if (!text.empty()) integer(text, draw(std::min<size_t>(text.size(), 64)));
  }

  const std::vector<std::string>& seeds_;
  const std::vector<std::string>& words_;
  std::mt19937_64 random_;
};

void report_and_die(int signal) {
  char text[160];
  const int length = std::snprintf(
      text, sizeof text, "fuzz: died on input %llu: run again with --seed %llu --only %llu\n",
      static_cast<unsigned long long>(g_number), static_cast<unsigned long long>(g_options.seed),
      static_cast<unsigned long long>(g_number));
  if (::write(STDERR_FILENO, text, static_cast<size_t>(length)) < 0) ::_exit(3);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

/// A header that lies must not make memory: what asks for gigabytes fails.
void limit_memory() {
#ifndef TESSERA_SANITIZE_address
  constexpr rlim_t kMost = rlim_t{4} << 30;
  const rlimit limit{kMost, kMost};
  ::setrlimit(RLIMIT_AS, &limit);
#endif
}

bool run_one(std::string_view input) {
  // A copy of its own, so that a sanitizer sees what reads past its end.
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  try {
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    return true;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz: input %llu of seed %llu (%zu bytes) threw: %s\n",
                 static_cast<unsigned long long>(g_number),
                 static_cast<unsigned long long>(g_options.seed), input.size(), error.what());
    return false;
  }
}

int run_files() {
  bool good = true;
  for (const std::string& path : g_options.files) {
    std::ifstream file(path, std::ios::binary);
    good = run_one(std::string(std::istreambuf_iterator<char>(file), {})) && good;
  }
  return good ? 0 : 1;
}

int run() {
  if (!g_options.files.empty()) return run_files();
  const std::vector<std::string> inputs = seeds();
  const std::vector<std::string> words = dictionary();
  for (const std::string& input : inputs) {
    if (!run_one(input)) return 1;
  }
  expect(2 * accepted > inputs.size(), "most seeds are good");
  accepted = 0;
  const auto input_number = [&](uint64_t number) {
    return Mutator(inputs, words, g_options.seed * 0x9E3779B97F4A7C15u + number).input();
  };
  if (g_options.only) {
    g_number = g_options.number;
    const std::string input = input_number(g_number);
    std::ofstream("fuzz-input", std::ios::binary) << input;
    return run_one(input) ? 0 : 1;
  }
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  for (uint64_t number = 0;; ++number) {
    if (g_options.seconds > 0 ? elapsed() > g_options.seconds : number >= g_options.iterations)
      break;
    g_number = number;
    if (!run_one(input_number(number))) return 1;
  }
  std::printf("%llu inputs, %llu of them accepted, in %.1f s, seed %llu\n",
              static_cast<unsigned long long>(g_number + 1),
              static_cast<unsigned long long>(accepted), elapsed(),
              static_cast<unsigned long long>(g_options.seed));
  return 0;
}

bool parse(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (!flag.starts_with("--")) {
      g_options.files.emplace_back(flag);
      continue;
    }
    if (++i == argc) return false;
    const char* value = argv[i];
    if (flag == "--seed") {
      g_options.seed = std::strtoull(value, nullptr, 10);
    } else if (flag == "--iterations") {
      g_options.iterations = std::strtoull(value, nullptr, 10);
    } else if (flag == "--seconds") {
      g_options.seconds = std::strtod(value, nullptr);
    } else if (flag == "--only") {
      g_options.only = true;
      g_options.number = std::strtoull(value, nullptr, 10);
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace tessera::fuzz

int main(int argc, char** argv) {
  using namespace tessera::fuzz;
  if (!parse(argc, argv)) {
    std::fprintf(stderr,
                 "usage: %s [--seed K] [--iterations N | --seconds S | --only N] [FILE ...]\n",
                 argv[0]);
    return 2;
  }
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGILL}) {
    std::signal(signal, report_and_die);
  }
  limit_memory();
  return run();
}
