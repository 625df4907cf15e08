// manifest.json of a checkpoint.

#include "formats/manifest.h"

#include "driver.h"

using tessera::formats::Manifest;

std::vector<std::string> tessera::fuzz::seeds() {
  Manifest manifest;
  manifest.step = 7;
  manifest.config = "[training]\nsteps = 9\n";
  manifest.layout = "dp=2";
  manifest.sampler_seed = 18446744073709551615U;
  manifest.samples = 84;
  manifest.files["rank-0.safetensors"] = {123, "0123456789abcdef0123456789abcdef"};
  manifest.files["rank-1.safetensors"] = {456, "fedcba9876543210fedcba9876543210"};
  const std::string empty = formats::to_json(manifest);
  formats::ManifestTensor tensor;
  tensor.dtype = core::DType::bf16;
  tensor.shape = {4, 3};
  tensor.slices = {{"rank-0.safetensors", "w", {0, 0}, {2, 3}},
                   {"rank-1.safetensors", "w", {2, 0}, {2, 3}}};
  manifest.tensors["model.norm.weight"]["weights"] = tensor;
  tensor.dtype = core::DType::f32;
  manifest.tensors["model.norm.weight"]["master"] = tensor;
  return {formats::to_json(manifest), empty};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Manifest manifest;
  if (tessera::fuzz::refused(
          [&] { manifest = tessera::formats::manifest_from_json(text, "manifest.json"); })) {
    return 0;
  }
  for (const auto& states : manifest.tensors) {
    for (const auto& state : states.second) {
      int64_t covered = 0;
      for (const auto& slice : state.second.slices) {
        covered += slice.shape.elements();
        tessera::fuzz::expect(manifest.files.count(slice.file) == 1, "a slice has its file");
      }
      tessera::fuzz::expect(covered == state.second.shape.elements(), "a tensor has no hole");
    }
  }
  const std::string written = to_json(manifest);
  const std::string again =
      to_json(tessera::formats::manifest_from_json(written, "the manifest as written"));
  tessera::fuzz::expect(again == written, "it reads the same once written");
  return 0;
}

std::vector<std::string> tessera::fuzz::dictionary() {
  return {
      R"("format")",      R"("version": 1)", R"("files": {)", R"("tensors": {)", R"("slices": [)",
      R"("offset": [0])", R"("shape": [])",  R"("weights")",  R"("master")",     R"("F32")",
      R"("BF16")",        R"(../x)",         R"(null)",       R"([[[[)",         "\xFF"};
}
