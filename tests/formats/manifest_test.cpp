#include "formats/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace tessera::formats {
namespace {

using nlohmann::json;
using testing::HasSubstr;

ManifestSlice slice(const std::string& file, std::vector<int64_t> offset, core::Shape shape) {
  ManifestSlice result;
  result.file = file;
  result.key = "w";
  result.offset = std::move(offset);
  result.shape = shape;
  return result;
}

Manifest sample() {
  Manifest manifest;
  manifest.step = 100;
  manifest.config = "[training]\nsteps = 100\n";
  manifest.layout = "dp=2";
  manifest.sampler_seed = 18446744073709551615u;
  manifest.samples = 1600;
  manifest.files["rank-0.safetensors"] = {123, "0123456789abcdef0123456789abcdef"};
  manifest.files["rank-1.safetensors"] = {456, "fedcba9876543210fedcba9876543210"};
  ManifestTensor tensor;
  tensor.dtype = core::DType::bf16;
  tensor.shape = {3, 4};
  tensor.slices = {slice("rank-0.safetensors", {0, 0}, {2, 4}),
                   slice("rank-1.safetensors", {2, 0}, {1, 1}),
                   slice("rank-1.safetensors", {2, 1}, {1, 3})};
  manifest.tensors["model.norm.weight"]["weights"] = tensor;
  tensor.dtype = core::DType::f32;
  manifest.tensors["model.norm.weight"]["master"] = tensor;
  return manifest;
}

/// The message with which a changed sample is refused.
std::string refusal(const std::function<void(json&)>& change) {
  json value = json::parse(to_json(sample()));
  change(value);
  try {
    manifest_from_json(value.dump(), "some/manifest.json");
  } catch (const core::RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("some/manifest.json"));
    return error.what();
  }
  return "accepted";
}

json& weights(json& value) {
  return value["tensors"]["model.norm.weight"]["weights"];
}

TEST(Manifest, ComesBackAsItWas) {
  const std::string text = to_json(sample());
  const Manifest read = manifest_from_json(text, "x");
  EXPECT_EQ(to_json(read), text);
  EXPECT_EQ(read.step, 100);
  EXPECT_EQ(read.sampler_seed, 18446744073709551615u);
  EXPECT_EQ(read.files.at("rank-1.safetensors").bytes, 456);
  const ManifestTensor& tensor = read.tensors.at("model.norm.weight").at("weights");
  EXPECT_EQ(tensor.dtype, core::DType::bf16);
  EXPECT_EQ(tensor.shape, (core::Shape{3, 4}));
  EXPECT_EQ(tensor.slices[2].offset, (std::vector<int64_t>{2, 1}));
}

TEST(Manifest, HasTheKeysOfTheInterface) {
  const json value = json::parse(to_json(sample()));
  EXPECT_EQ(value["format"], "tessera-checkpoint");
  EXPECT_EQ(value["version"], 1);
  EXPECT_EQ(value["sampler"]["samples"], 1600);
  const json& part = value["tensors"]["model.norm.weight"]["master"]["slices"][1];
  EXPECT_EQ(part["file"], "rank-1.safetensors");
  EXPECT_EQ(part["offset"], (json{2, 0}));
  EXPECT_EQ(value["files"]["rank-0.safetensors"]["xxh3"], "0123456789abcdef0123456789abcdef");
}

TEST(Manifest, IsRefusedWhenItIsCutShort) {
  const std::string text = to_json(sample());
  for (size_t length = 0; length + 2 < text.size(); length += 37) {
    EXPECT_THROW(manifest_from_json(text.substr(0, length), "x"), core::RunError);
  }
}

TEST(Manifest, IsRefusedByItsFormatOrVersion) {
  EXPECT_THAT(refusal([](json& v) { v["format"] = "other"; }), HasSubstr("tessera-checkpoint"));
  EXPECT_THAT(refusal([](json& v) { v["version"] = 2; }), HasSubstr("version 2"));
  EXPECT_THAT(refusal([](json& v) { v.erase("version"); }), HasSubstr("version 0"));
  EXPECT_THAT(refusal([](json& v) { v = json::array(); }), HasSubstr("not a JSON object"));
}

TEST(Manifest, IsRefusedWithAKeyTwice) {
  std::string text = to_json(sample());
  const std::string step = "\"step\": ";
  text.insert(text.find(step), "\"step\": 1, ");
  try {
    manifest_from_json(text, "x/manifest.json");
    FAIL() << "took it";
  } catch (const core::RunError& error) {
    EXPECT_THAT(error.what(), HasSubstr("x/manifest.json: not a usable checkpoint manifest"));
    EXPECT_THAT(error.what(), HasSubstr("\"step\""));
  }
}

TEST(Manifest, IsRefusedWithTheNameOfWhatIsMissingOrUnknown) {
  EXPECT_THAT(refusal([](json& v) { v.erase("step"); }), HasSubstr("\"step\""));
  EXPECT_THAT(refusal([](json& v) { v["sampler"].erase("seed"); }), HasSubstr("sampler has no"));
  EXPECT_THAT(refusal([](json& v) { v["extra"] = 1; }), HasSubstr("\"extra\""));
  EXPECT_THAT(refusal([](json& v) { weights(v).erase("dtype"); }), HasSubstr("\"dtype\""));
  EXPECT_THAT(refusal([](json& v) { v["tensors"]["model.norm.weight"].erase("weights"); }),
              HasSubstr("\"weights\""));
  EXPECT_THAT(refusal([](json& v) { v["tensors"]["model.norm.weight"]["w"] = 1; }),
              HasSubstr("\"w\""));
}

TEST(Manifest, IsRefusedWithThePlaceOfAWrongType) {
  EXPECT_THAT(refusal([](json& v) { v["step"] = -1; }), HasSubstr("step is not a whole number"));
  EXPECT_THAT(refusal([](json& v) { v["config"] = 1; }), HasSubstr("config is not a text"));
  EXPECT_THAT(refusal([](json& v) { weights(v)["slices"][1]["offset"][0] = 1.5; }),
              HasSubstr("tensors.model.norm.weight.weights.slices[1].offset[0]"));
  EXPECT_THAT(refusal([](json& v) { weights(v)["dtype"] = "F16"; }), HasSubstr("F16"));
}

TEST(Manifest, IsRefusedWhenSlicesDoNotCoverTheirTensorOnce) {
  EXPECT_THAT(refusal([](json& v) { weights(v)["slices"].erase(2); }),
              HasSubstr("9 elements in all, not its 12"));
  EXPECT_THAT(refusal([](json& v) { weights(v)["slices"][2]["offset"] = {2, 0}; }),
              HasSubstr("overlap"));
  EXPECT_THAT(refusal([](json& v) { weights(v)["slices"][2]["offset"] = {2, 2}; }),
              HasSubstr("beyond"));
  EXPECT_THAT(refusal([](json& v) { weights(v)["slices"][2]["offset"] = {2}; }),
              HasSubstr("dimensions"));
  EXPECT_THAT(refusal([](json& v) {
                weights(v)["slices"][2]["offset"] = {int64_t{9223372036854775807}, 0};
              }),
              HasSubstr("beyond"));
}

TEST(Manifest, IsRefusedWhenItNamesFilesThatAreNotInTheFolder) {
  EXPECT_THAT(refusal([](json& v) { weights(v)["slices"][0]["file"] = "rank-9.safetensors"; }),
              HasSubstr("rank-9.safetensors"));
  EXPECT_THAT(refusal([](json& v) { v["files"]["../x"] = v["files"]["rank-0.safetensors"]; }),
              HasSubstr("../x"));
}

std::string hash_of(const std::string& bytes) {
  Xxh3 hash;
  hash.update(bytes.data(), static_cast<int64_t>(bytes.size()));
  return hash.hex();
}

TEST(Xxh3, IsTheCanonicalForm) {
  // From xxhsum -H128 of the empty input and of "abc".
  EXPECT_EQ(hash_of(""), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hash_of("abc"), "06b05ab6733a618578af5f94892f3950");
}

TEST(Xxh3, DoesNotDependOnHowBytesAreCut) {
  std::string bytes(100'000, 'x');
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * i);
  Xxh3 hash;
  for (size_t first = 0, piece = 1; first < bytes.size(); first += piece, piece = piece * 3 % 977) {
    piece = std::min(piece, bytes.size() - first);
    hash.update(bytes.data() + first, static_cast<int64_t>(piece));
  }
  EXPECT_EQ(hash.hex(), hash_of(bytes));
}

TEST(DigestOfFile, ThrowsWhenThereIsNoFile) {
  EXPECT_THROW(digest_of_file("/nonexistent/file"), core::RunError);
}

}  // namespace
}  // namespace tessera::formats
