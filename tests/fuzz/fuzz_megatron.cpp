// Megatron's .idx, beside a .bin whose size the first byte says.

#include "data/token_file.h"
#include "driver.h"

using namespace tessera;

namespace {

constexpr int64_t kVocab = 257;
constexpr int32_t kEnd = 256;

std::string index(uint8_t code, const std::vector<int32_t>& lengths,
                  const std::vector<int64_t>& pointers, const std::vector<int64_t>& bounds) {
  std::string bytes("MMIDIDX\0\0", 9);
  bytes += fuzz::bytes_of(uint64_t{1}) + fuzz::bytes_of(code);
  bytes += fuzz::bytes_of(static_cast<uint64_t>(lengths.size()));
  bytes += fuzz::bytes_of(static_cast<uint64_t>(bounds.size()));
  for (const int32_t length : lengths) bytes += fuzz::bytes_of(length);
  for (const int64_t pointer : pointers) bytes += fuzz::bytes_of(pointer);
  for (const int64_t bound : bounds) bytes += fuzz::bytes_of(bound);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  fuzz::write_file("m.bin", std::string(data[0], '\1'));
  const std::string path = fuzz::write_file("m.idx", fuzz::as_text(data + 1, size - 1));
  fuzz::refused([&] {
    const data::TokenFile file(path, {data::DataFormat::automatic, kVocab, kEnd});
    const int64_t in_file = file.num_tokens() - file.added_separators();
    fuzz::expect(in_file >= 0 && in_file * file.token_bytes() <= data[0], "ids are in the .bin");
    fuzz::expect(file.added_separators() <= *file.num_documents(), "a separator a document");
    std::vector<int32_t> ids(static_cast<size_t>(file.num_tokens()));
    file.read(0, ids);
    int64_t separators = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      int32_t one = 0;
      file.read(static_cast<int64_t>(i), {&one, 1});
      fuzz::expect(one == ids[i], "any cut of the stream is the same");
      separators += one == kEnd;
    }
    fuzz::expect(separators >= file.added_separators(), "separators are read");
    file.check_ids(kVocab);
  });
  return 0;
}

std::vector<std::string> tessera::fuzz::seeds() {
  const std::string bin(1, '\x0A');  // ten bytes
  return {bin + index(8, {2, 1, 2}, {0, 4, 6}, {0, 2, 3}),
          bin + index(1, {4, 0, 6}, {0, 4, 4}, {0, 1, 2, 3}),
          bin + index(4, {1, 1}, {4, 0}, {0, 2}) + std::string(2, '\1'),
          bin + index(5, {}, {}, {0}), std::string(1, '\0') + index(2, {}, {}, {})};
}

std::vector<std::string> tessera::fuzz::dictionary() {
  return {std::string("MMIDIDX\0\0", 9), bytes_of(uint64_t{0}), bytes_of(uint64_t{1}),
          bytes_of(uint64_t{3}),         bytes_of(int32_t{2}),  bytes_of(int64_t{-1})};
}
