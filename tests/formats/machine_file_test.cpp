#include "formats/machine_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"

namespace tessera::formats {
namespace {

using ::testing::HasSubstr;

account::MachineTimes some_machine() {
  account::MachineTimes machine;
  machine.device = "a processor";
  machine.cores = 2;
  account::UnitTimes unit;
  unit.kind = account::UnitKind::head;
  unit.shape = "gpt2 C16 V32";
  unit.company = {2, 1};
  unit.forward_s = 1.25e-3;
  unit.backward_s = 2.5e-3;
  unit.stream_forward_s = 1e-5;
  machine.units.push_back(unit);
  account::StateTimes state;
  state.shape = "fp32/fp32";
  state.optimizer_s = 1e-9;
  machine.states.push_back(state);
  machine.links.push_back({"all_reduce", "shm", 2, 1e-6, 5e9});
  return machine;
}

std::string refusal_of(const std::string& text) {
  try {
    parse_machine_times(text, "kernels.json");
  } catch (const core::ConfigError& error) {
    return error.what();
  }
  return "";
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  const size_t at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), with);
}

TEST(KernelsFile, ReadsBackWhatWasWritten) {
  const account::MachineTimes machine = some_machine();
  const account::MachineTimes read = parse_machine_times(to_json(machine), "kernels.json");
  EXPECT_EQ(to_json(read), to_json(machine));
  ASSERT_EQ(read.units.size(), 1u);
  EXPECT_EQ(read.units[0].kind, account::UnitKind::head);
  EXPECT_EQ(read.units[0].company, (account::Company{2, 1}));
  EXPECT_EQ(read.units[0].forward_s, 1.25e-3);
  EXPECT_EQ(read.links.at(0).bytes_per_s, 5e9);
}

TEST(KernelsFile, IsRefusedWithItsPlaceWhereATimeIsNone) {
  const std::string text = to_json(some_machine());
  EXPECT_THAT(refusal_of(replaced(text, "0.00125", "-1")),
              AllOf(HasSubstr("kernels.json: units[0]"), HasSubstr("forward_s = -1")));
  EXPECT_THAT(refusal_of(replaced(text, "\"head\"", "\"tail\"")), HasSubstr("embedding, block"));
  EXPECT_THAT(refusal_of(replaced(text, "\"cores\"", "\"kernels\"")), HasSubstr("no \"cores\""));
  EXPECT_THAT(refusal_of(replaced(text, "\"tessera_kernels\": 1", "\"tessera_kernels\": 7")),
              HasSubstr("tessera_kernels = 7"));
  EXPECT_NE(refusal_of("[]"), "");
  EXPECT_NE(refusal_of("{"), "");
}

TEST(LinksFile, GivesEveryLinkWithItsRanks) {
  const auto links = parse_links(
      "# measured\n[[link]]\nname = \"shm\"\nranks = 2\nlatency_s = 1.5e-06\nbytes_per_s = "
      "5.2e+09\n"
      "[[link]]\nname = \"mpi\"\nranks = 4\nlatency_s = 2e-05\nbytes_per_s = 1e+09\n",
      "links.toml");
  ASSERT_EQ(links.size(), 2u);
  EXPECT_EQ(links[0].name, "shm");
  EXPECT_EQ(links[0].ranks, 2);
  EXPECT_EQ(links[0].latency_s, 1.5e-6);
  EXPECT_EQ(links[1].bytes_per_s, 1e9);
  EXPECT_EQ(links[1].collective, "");
}

TEST(LinksFile, IsRefusedWhereItHasNoLinkOrHalfOfOne) {
  EXPECT_THROW(parse_links("", "links.toml"), core::ConfigError);
  EXPECT_THROW(parse_links("[[link]]\nname = \"shm\"\n", "links.toml"), core::ConfigError);
  EXPECT_THROW(parse_links("[[link]\n", "links.toml"), core::ConfigError);
}

}  // namespace
}  // namespace tessera::formats
