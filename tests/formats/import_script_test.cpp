// Scripts that start Megatron, as people write them: whatever they do with variables, no flag and
// nothing that is spliced in is lost.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <random>
#include <string>
#include <vector>

#include "core/error.h"
#include "formats/import/entry.h"
#include "formats/import/import.h"

namespace tessera::formats {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

ImportResult from_script(const std::string& script) {
  return import_config(System::megatron, script, "run.sh");
}

std::string value_of(const ImportResult& result, const std::string& key) {
  for (const MappedKey& mapped : result.mapped) {
    if (mapped.key == key) return mapped.text;
  }
  return "-";
}

/// The sources of the input that are said to be not in it.
std::vector<std::string> unknown_in(const ImportResult& result) {
  std::vector<std::string> sources;
  for (const UnmappedKey& unmapped : result.unmapped) {
    if (unmapped.kind == Unmapped::unknown_value) sources.push_back(unmapped.source);
  }
  return sources;
}

/// What looks like a flag in the text, quotes and brackets or not: -- and a letter, and on.
std::vector<std::string> flags_in(const std::string& text) {
  std::vector<std::string> flags;
  for (size_t at = text.find("--"); at != std::string::npos; at = text.find("--", at + 2)) {
    if (text[at + 2] == '-') ++at;
    size_t end = at + 2;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '-')) {
      ++end;
    }
    if (end > at + 2) flags.push_back(text.substr(at, end - at));
  }
  return flags;
}

/// The flags of the script that are in neither list.
std::vector<std::string> lost_in(const std::string& script) {
  const ImportResult result = from_script(script);
  std::vector<std::string> sources;
  for (const MappedKey& mapped : result.mapped) {
    sources.insert(sources.end(), mapped.sources.begin(), mapped.sources.end());
  }
  for (const UnmappedKey& unmapped : result.unmapped) sources.push_back(unmapped.source);
  std::vector<std::string> lost;
  for (const std::string& flag : flags_in(script)) {
    const bool found = std::any_of(sources.begin(), sources.end(), [&](const std::string& source) {
      const std::vector<std::string> said = flags_in(source);
      return std::find(said.begin(), said.end(), flag) != said.end();
    });
    if (!found) lost.push_back(flag);
  }
  return lost;
}

TEST(ImportScript, GathersAVariableThatGrows) {
  const ImportResult result = from_script(
      "ARGS=\"--num-layers 2\"\n"
      "ARGS=\"$ARGS --hidden-size 64\"\n"
      "ARGS=\"${ARGS} --num-attention-heads 4\"\n"
      "ARGS+=\" --lr 1e-3\"\n"
      "B=(--bf16)\nB+=(--seed 7)\nB=(\"${B[@]}\" --clip-grad 2)\n"
      "if [ -n \"$X\" ]; then\n  ARGS=\"$ARGS --train-iters 5\"\nfi\n"
      "ALL=\"$ARGS\"\n"
      "python pretrain_gpt.py $ALL \"${B[@]}\"\n");
  const std::pair<const char*, const char*> expected[] = {
      {"model.num_hidden_layers", "2"},   {"model.hidden_size", "64"},
      {"model.num_attention_heads", "4"}, {"optimizer.lr", "1e-3"},
      {"training.precision", "bf16"},     {"training.seed", "7"},
      {"training.max_norm", "2"},         {"training.steps", "5"}};
  for (const auto& pair : expected) EXPECT_EQ(value_of(result, pair.first), pair.second);
  EXPECT_THAT(result.unmapped, IsEmpty());
}

TEST(ImportScript, ListsWhatIsSplicedInAndNotKnown) {
  const ImportResult result = from_script(
      "EXTRA=\"$EXTRA --num-layers 2\"\n"
      "A=$1\nA=\"$A --seed 7\"\n"
      "torchrun $LAUNCH pretrain_gpt.py $EXTRA $A $MORE_ARGS --bf16 $(cat flags.txt) `cat more` "
      "\"$@\"\n");
  EXPECT_THAT(unknown_in(result), ElementsAre("$EXTRA", "$A", "$LAUNCH", "$MORE_ARGS",
                                              "$(cat flags.txt)", "`cat more`", "$@"));
}

TEST(ImportScript, LeavesTheExpansionsOfOtherCommandsAlone) {
  const ImportResult result = from_script(
      "cd $ROOT\nmkdir -p \"$LOGS/$(date)\"\nif [ -z \"$X\" ]; then exit 1; fi\n"
      "PYTHON=python3\nEMPTY=\n"
      "$PYTHON \"$ROOT/pretrain_gpt.py\" $EMPTY ${HOOK:-} --num-layers 2 >$LOGS/out 2>&1\n");
  EXPECT_THAT(result.unmapped, IsEmpty());
}

TEST(ImportScript, TakesTheDefaultOfAVariable) {
  const ImportResult result = from_script(
      "export SEQ=${SEQ:-512}\n"
      "EXTRA=${EXTRA:-\"--seed 7 --bf16\"}\n"
      "x.py $EXTRA --seq-length $SEQ --num-layers ${LAYERS:-\"3\"} --lr ${1:-${LR:-1e-4}}\n");
  EXPECT_EQ(value_of(result, "data.seq_len"), "512");
  EXPECT_EQ(value_of(result, "model.num_hidden_layers"), "3");
  EXPECT_EQ(value_of(result, "training.seed"), "7");
  EXPECT_EQ(value_of(result, "training.precision"), "bf16");
  EXPECT_EQ(value_of(result, "optimizer.lr"), "1e-4");
  EXPECT_THAT(result.unmapped, IsEmpty());
}

TEST(ImportScript, TakesNoDefaultWhereTheVariableMayBeSet) {
  EXPECT_THAT(unknown_in(from_script("A=$1\nx.py --num-layers 2 --seed ${A:-7}\n")),
              ElementsAre("--seed ${A:-7}"));
}

TEST(ImportScript, LeavesTheProgramAndUnknownArgumentsOutOfAFlagsValue) {
  const ImportResult result = from_script(
      "torchrun --nproc_per_node 8 pretrain_gpt.py --overlap-grad-reduce $MORE --save /ckpt $LAST "
      "--num-layers 2\n");
  std::vector<std::string> sources;
  for (const UnmappedKey& unmapped : result.unmapped) sources.push_back(unmapped.source);
  EXPECT_THAT(sources, testing::UnorderedElementsAre("--nproc_per_node 8", "pretrain_gpt.py",
                                                     "--overlap-grad-reduce", "$MORE",
                                                     "--save /ckpt", "$LAST"));
}

TEST(ImportScript, LosesNoFlagHoweverTheScriptIsPutTogether) {
  // N is replaced by a number of its own each time.
  const char* const fragments[] = {
      "A=\"--fN 1\"\n",
      "A=\"$A --fN 1 --fN\"\n",
      "A=\"${A} --fN=1\"\n",
      "A+=\" --fN\"\n",
      "B=(--fN \"x y\")\n",
      "B+=(--fN \\\n  --fN)\n",
      "B=(\"${B[@]}\" --fN)\n",
      "if [ -n \"$C\" ]; then A=\"$A --fN\"; else A=\"$A --fN 2\"; fi\n",
      "[ \"$C\" = 1 ] && A=\"--fN $A\"\n",
      "export E=\"$E --fN $U\"\n",
      "F=\"it's --fN 1\"\n",
      "G=${G:---fN}\n",
      "G=${G:-\"--fN 1 --fN 2\"}\n",
      "H=${C:+--fN}\n",
      "I=$(cat --fN file | tail --fN)\n",
      "J=\"x #1 --fN\"\n",
      "case $1 in\n  --fN) K=\"$2\"; shift ;;\nesac\n",
      "run() {\n  python x.py $A \"$@\" --fN\n}\n",
      "( cd /x; python x.py --fN 1 )\n",
      "for L in 1 2; do A=\"$A --fN $L\"; done\n",
      "python x.py $A ${B[@]} $E $H --fN $M 2>&1 | tee log --fN\n",
      "python x.py ${A:---fN} $(cat --fN x) `cat --fN` ${B[@]/--fN/}\n",
      "srun --fN bash -c \"python x.py --fN 1 $A --fN 2\"\n",
      "bash -c \"python x.py --fN\"\n",
      "sh <<END\npython x.py --fN $A\nEND\n",
      "CMD='python x.py --fN 1'\n",
      "eval \"$CMD $A --fN\"\n",
      "N=1 O=--fN python x.py P=--fN --fN Q=--fN\n"};
  std::mt19937 random(7);
  for (int trial = 0; trial < 500; ++trial) {
    std::string script;
    int number = 0;
    for (int i = 0; i < 6; ++i) {
      std::string fragment = fragments[random() % std::size(fragments)];
      for (size_t at = fragment.find("--fN"); at != std::string::npos; at = fragment.find("--fN")) {
        fragment.replace(at, 4, "--f" + std::to_string(++number));
      }
      script += fragment;
    }
    script += "python pretrain_gpt.py $A --num-layers 2\n";
    EXPECT_THAT(lost_in(script), IsEmpty()) << script;
  }
}

TEST(ImportScript, TakesFlagsOutOfNoComment) {
  EXPECT_THAT(from_script("# --seed 7\nx.py --num-layers 2 # --bf16\n").unmapped, IsEmpty());
}

TEST(ImportScript, RefusesATextWithoutATrainingArgument) {
  for (const char* script : {"", "just a readme --with nothing\n",
                             "torchrun --nproc-per-node 8 x.py\n", "x.py $ARGS\n"}) {
    try {
      from_script(script);
      ADD_FAILURE() << "took " << script;
    } catch (const core::ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("run.sh: no training argument")) << script;
    }
  }
  EXPECT_THROW(import_megatron_arguments({"--with", "nothing"}), core::ConfigError);
}

TEST(ImportScript, RefusesWhatIsNotClosedWithItsLine) {
  for (const char* open : {"'", "\"", "$(", "${", "`", "\"$(", "$(\""}) {
    try {
      from_script(std::string("x.py --num-layers 2\nx.py --lr ") + open + "1\n\n");
      ADD_FAILURE() << "took " << open;
    } catch (const core::ConfigError& error) {
      EXPECT_THAT(error.what(), HasSubstr("run.sh:2: opens")) << open;
    }
  }
}

TEST(ImportScript, ReadsContinuedLinesOfBothKinds) {
  std::vector<std::string> words;
  for (const ShellWord& word : read_shell_words("x.py --a 1 \\\r\n  --b 2\r\n", "x")) {
    words.push_back(word.text);
  }
  EXPECT_THAT(words, ElementsAre("--a", "1", "--b", "2"));
}

}  // namespace
}  // namespace tessera::formats
