// llm.c's token files, and nanoGPT's. The first byte says how the file is named and opened.

#include "data/token_file.h"
#include "data/token_writer.h"
#include "driver.h"

using namespace tessera;

namespace {

constexpr int64_t kVocab = 50257;

std::string llmc(uint32_t magic, uint32_t version, uint32_t count, const std::string& body) {
  std::string header = fuzz::bytes_of(magic) + fuzz::bytes_of(version) + fuzz::bytes_of(count);
  header.resize(data::kTokenFileHeaderBytes);
  return header + body;
}

void check(const data::TokenFile& file, size_t size) {
  const auto bytes = static_cast<size_t>(file.num_tokens() * file.token_bytes());
  const bool llmc = file.format() == data::DataFormat::llmc;
  fuzz::expect(bytes + (llmc ? data::kTokenFileHeaderBytes : 0) == size, "tokens fill the file");
  std::vector<int32_t> ids(static_cast<size_t>(file.num_tokens()));
  file.read(0, ids);
  file.check_ids(kVocab);
  for (const int32_t id : ids) fuzz::expect(id >= 0 && id < kVocab, "ids were checked");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string path = fuzz::write_file("t.bin", fuzz::as_text(data + 1, size - 1));
  static constexpr data::DataFormat kFormats[] = {
      data::DataFormat::automatic, data::DataFormat::llmc, data::DataFormat::nanogpt};
  fuzz::refused(
      [&] { check(data::TokenFile(path, {kFormats[data[0] % 3], kVocab, 50256}), size - 1); });
  return 0;
}

std::vector<std::string> tessera::fuzz::seeds() {
  const std::string narrow("\x05\0\x00\x01\xFE\x7F\x50\xC4\x07\0\x09\0", 12);
  const std::string wide("\x05\0\0\0\x50\xC4\0\0\x07\0\0\0", 12);
  std::vector<std::string> all;
  for (const char kind : {'\0', '\1', '\2'}) {
    const std::string first(1, kind);
    all.push_back(first + llmc(data::kTokenFileMagic16, 1, 6, narrow));
    all.push_back(first + llmc(data::kTokenFileMagic32, 7, 3, wide));
    all.push_back(first + narrow);
  }
  all.push_back(std::string(1, '\0') + llmc(data::kEvalFileMagic, 1, 6, narrow));
  return all;
}

std::vector<std::string> tessera::fuzz::dictionary() {
  return {bytes_of(data::kTokenFileMagic16),
          bytes_of(data::kTokenFileMagic32),
          bytes_of(data::kEvalFileMagic),
          bytes_of(uint32_t{1}),
          bytes_of(uint32_t{7}),
          std::string("MMIDIDX\0\0", 9),
          std::string(64, '\0'),
          std::string(64, 'a')};
}
