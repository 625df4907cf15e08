#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <sstream>
#include <vector>

#include "core/error.h"
#include "core/file.h"
#include "formats/manifest.h"
#include "formats/safetensors.h"
#include "train/agreement.h"
#include "train/checkpoint.h"
#include "train/checkpoint_slices.h"
#include "train/new_folder.h"
#include "train/run_folder.h"

namespace tessera::train {

namespace fs = std::filesystem;
using core::ConstView;
using core::DType;
using core::Shape;
using core::View;
using parallel::StateKind;

namespace {

constexpr std::array kKinds = {StateKind::weights, StateKind::master, StateKind::m, StateKind::v};

std::string file_of(int64_t rank) {
  return fmt::format("rank-{:05d}.safetensors", rank);
}

/// What a rank has written, as others learn it: lines of
/// "NAME KIND DTYPE DIMS WHOLE… OFFSET… SHAPE…".
struct OwnFile {
  formats::FileDigest digest;
  std::string slices;
};

std::string numbers(std::span<const int64_t> values) {
  std::string text;
  for (const int64_t value : values) text += fmt::format(" {}", value);
  return text;
}

OwnFile write_own_file(const fs::path& folder, const parallel::ModelState& state,
                       parallel::MeshGroups& groups) {
  std::vector<formats::NamedTensor> tensors;
  OwnFile file;
  const auto& parameters = state.table().parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const account::Parameter& parameter = parameters[i];
    const int64_t begin = state.owned_range(parameter).first;
    for (const Block& slice : slices_of(state, i, groups.coordinate().dp)) {
      for (StateKind kind : kKinds) {
        if (!state.has(kind, parameter)) continue;
        const View owned = state.owned(kind, parameter);
        tensors.push_back({key_of(parameter.name, parameter.whole, kind, slice),
                           owned.slice(slice.first - begin, slice.shape)});
        file.slices += fmt::format("{} {} {} {}{}{}{}\n", parameter.name, static_cast<int>(kind),
                                   static_cast<int>(owned.dtype), parameter.whole.dims(),
                                   numbers(parameter.whole.sizes()), numbers(slice.offset),
                                   numbers(slice.shape.sizes()));
      }
    }
  }
  const fs::path path = folder / file_of(groups.world().rank());
  file.digest = formats::write_safetensors(path.string(), tensors);
  return file;
}

/// Every rank's digest, on every rank: 8 bytes of size and 32 hexadecimal digits.
std::vector<formats::FileDigest> gather_digests(comm::Communicator& comm,
                                                const formats::FileDigest& mine) {
  constexpr int64_t kDigits = 32;
  CHECK(static_cast<int64_t>(mine.xxh3.size()) == kDigits);
  const auto ranks = static_cast<size_t>(comm.size());
  std::vector<int64_t> sizes(ranks);
  std::string digits(ranks * kDigits, '0');
  comm.all_gather(View{sizes.data(), DType::i64, {comm.size()}},
                  ConstView{&mine.bytes, DType::i64, {1}});
  comm.all_gather(View{digits.data(), DType::u8, {comm.size() * kDigits}},
                  ConstView{mine.xxh3.data(), DType::u8, {kDigits}});
  std::vector<formats::FileDigest> digests;
  for (size_t rank = 0; rank < ranks; ++rank) {
    digests.push_back({sizes[rank], digits.substr(rank * kDigits, kDigits)});
  }
  return digests;
}

/// Every rank's text, at rank 0.
std::vector<std::string> gather_texts(comm::Communicator& comm, std::string mine) {
  const auto length = static_cast<int64_t>(mine.size());
  std::vector<int64_t> lengths(static_cast<size_t>(comm.size()));
  comm.all_gather(View{lengths.data(), DType::i64, {comm.size()}},
                  ConstView{&length, DType::i64, {1}});
  const int64_t longest = *std::max_element(lengths.begin(), lengths.end());
  if (longest == 0) return std::vector<std::string>(lengths.size());
  mine.resize(static_cast<size_t>(longest));
  const bool first_rank = comm.rank() == 0;
  std::string all(first_rank ? lengths.size() * mine.size() : 0, '\0');
  comm.gather(View{all.data(), DType::u8, {static_cast<int64_t>(all.size())}},
              ConstView{mine.data(), DType::u8, {longest}}, 0);
  std::vector<std::string> texts;
  for (size_t rank = 0; first_rank && rank < lengths.size(); ++rank) {
    texts.push_back(all.substr(rank * mine.size(), static_cast<size_t>(lengths[rank])));
  }
  return texts;
}

Shape read_shape(std::istream& line, int dims) {
  std::array<int64_t, Shape::kMaxDims> sizes{};
  for (int i = 0; i < dims; ++i) line >> sizes[static_cast<size_t>(i)];
  return Shape::of({sizes.data(), static_cast<size_t>(dims)});
}

/// Adds what one rank has written.
void add_slices(formats::Manifest& manifest, const std::string& file, const std::string& slices) {
  std::istringstream lines(slices);
  std::string name;
  int kind_number = 0, dtype = 0, dims = 0;
  while (lines >> name >> kind_number >> dtype >> dims) {
    const auto kind = static_cast<StateKind>(kind_number);
    formats::ManifestTensor& tensor = manifest.tensors[name][name_of(kind)];
    tensor.dtype = static_cast<DType>(dtype);
    tensor.shape = read_shape(lines, dims);
    Block block;
    for (int i = 0; i < dims; ++i) lines >> block.offset.emplace_back();
    block.shape = read_shape(lines, dims);
    CHECK(!lines.fail(), "a slice that was not told in full");
    tensor.slices.push_back(
        {file, key_of(name, tensor.shape, kind, block), block.offset, block.shape});
  }
}

formats::Manifest make_manifest(const CheckpointHeader& header,
                                const std::vector<formats::FileDigest>& digests,
                                const std::vector<std::string>& slices) {
  formats::Manifest manifest;
  manifest.step = header.step;
  manifest.config = header.config;
  manifest.layout = header.layout;
  manifest.sampler_seed = header.sampler_seed;
  manifest.samples = header.samples;
  for (size_t rank = 0; rank < digests.size(); ++rank) {
    const std::string file = file_of(static_cast<int64_t>(rank));
    manifest.files[file] = digests[rank];
    add_slices(manifest, file, slices[rank]);
  }
  return manifest;
}

}  // namespace

void save_checkpoint(const fs::path& folder, const parallel::ModelState& state,
                     parallel::MeshGroups& groups, const CheckpointHeader& header) {
  comm::Communicator& comm = groups.world();
  const fs::path temporary = folder.string() + ".tmp";
  const bool first_rank = comm.rank() == 0;
  try {
    agree(comm, [&] {
      if (!first_rank) return;
      fs::remove_all(temporary);
      fs::create_directories(temporary);
    });
    OwnFile file;
    agree(comm, [&] { file = write_own_file(temporary, state, groups); });
    const std::vector<formats::FileDigest> digests = gather_digests(comm, file.digest);
    const std::vector<std::string> slices = gather_texts(comm, std::move(file.slices));
    agree(comm, [&] {
      if (!first_rank) return;
      const formats::Manifest manifest = make_manifest(header, digests, slices);
      write_file_atomically(temporary / "manifest.json", formats::to_json(manifest));
      core::sync_to_disk(temporary.string());
      put_in_place(temporary, folder);
    });
  } catch (const core::CommError&) {
    throw;  // a peer is gone: what it left is removed by the next prune
  } catch (const std::exception& error) {
    std::error_code ignored;
    if (first_rank) fs::remove_all(temporary, ignored);
    throw AgreedRunError(
        fmt::format("the checkpoint of step {} could not be saved: {}. Earlier checkpoints are "
                    "intact; when the cause is mended (a full disk: checkpoint.keep_latest_k), "
                    "--resume",
                    header.step, error.what()));
  }
}

}  // namespace tessera::train
