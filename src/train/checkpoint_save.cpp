#include <fmt/format.h>

#include <array>
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
using core::View;
using parallel::StateKind;

namespace {

constexpr std::array kKinds = {StateKind::weights, StateKind::master, StateKind::m, StateKind::v};

std::string file_of(int64_t rank) {
  return fmt::format("rank-{:05d}.safetensors", rank);
}

formats::FileDigest write_own_file(const fs::path& folder, const parallel::ModelState& state,
                                   const comm::Communicator& comm) {
  std::vector<formats::NamedTensor> tensors;
  const auto& parameters = state.table().parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const int64_t begin = state.owned_range(parameters[i]).first;
    for (const OwnedBlock& slice : slices_of(state, i, comm.size())) {
      if (slice.rank != comm.rank()) continue;
      for (StateKind kind : kKinds) {
        if (!state.has(kind, parameters[i])) continue;
        const View owned = state.owned(kind, parameters[i]);
        tensors.push_back({key_of(parameters[i], kind, slice.block),
                           owned.slice(slice.block.first - begin, slice.block.shape)});
      }
    }
  }
  return formats::write_safetensors((folder / file_of(comm.rank())).string(), tensors);
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

formats::Manifest make_manifest(const parallel::ModelState& state, int64_t num_ranks,
                                const CheckpointHeader& header,
                                const std::vector<formats::FileDigest>& digests) {
  formats::Manifest manifest;
  manifest.step = header.step;
  manifest.config = header.config;
  manifest.layout = header.layout;
  manifest.sampler_seed = header.sampler_seed;
  manifest.samples = header.samples;
  for (size_t rank = 0; rank < digests.size(); ++rank) {
    manifest.files[file_of(static_cast<int64_t>(rank))] = digests[rank];
  }
  const auto& parameters = state.table().parameters;
  for (size_t i = 0; i < parameters.size(); ++i) {
    const account::Parameter& parameter = parameters[i];
    formats::ManifestStates& states = manifest.tensors[parameter.name];
    for (const OwnedBlock& slice : slices_of(state, i, num_ranks)) {
      for (StateKind kind : kKinds) {
        if (!state.has(kind, parameter)) continue;
        formats::ManifestTensor& tensor = states[name_of(kind)];
        tensor.dtype = state.owned(kind, parameter).dtype;
        tensor.shape = parameter.shape;
        tensor.slices.push_back({file_of(slice.rank), key_of(parameter, kind, slice.block),
                                 slice.block.offset, slice.block.shape});
      }
    }
  }
  return manifest;
}

}  // namespace

void save_checkpoint(const fs::path& folder, const parallel::ModelState& state,
                     parallel::DataParallel& dp, const CheckpointHeader& header) {
  comm::Communicator& comm = dp.all();
  const fs::path temporary = folder.string() + ".tmp";
  const bool first_rank = comm.rank() == 0;
  try {
    agree(comm, [&] {
      if (!first_rank) return;
      fs::remove_all(temporary);
      fs::create_directories(temporary);
    });
    formats::FileDigest digest;
    agree(comm, [&] { digest = write_own_file(temporary, state, comm); });
    const std::vector<formats::FileDigest> digests = gather_digests(comm, digest);
    agree(comm, [&] {
      if (!first_rank) return;
      const formats::Manifest manifest = make_manifest(state, comm.size(), header, digests);
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
