// What a specification asks for, and how it is refused.
#include "bench/accept/spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/files.hpp"
#include "tests/folder.hpp"
#include "tests/models/refusal.hpp"

namespace polyring {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

const Quantity kBusbw{"busbw", "GB/s"};
const Quantity kRatio{"time/median rank's", "", true};

Specification parse(const std::string& text) { return parse_spec(text, "site.toml", checks()); }

std::string refused(const std::string& text) {
  return refusal([&] { parse(text); });
}

/// Of a reference to the busbw of all.allreduce, on line 2.
std::string refused_reference(const std::string& value) {
  const std::string sentence = refused("[reference.\"all.allreduce\"]\nbusbw = " + value);
  EXPECT_THAT(sentence, StartsWith("site.toml:2: "));
  return sentence;
}

std::optional<Threshold> of(const Specification& spec, std::uint64_t size, const std::string& subject) {
  return spec.of({"all.allreduce", kBusbw, size, subject});
}

TEST(Spec, NamesChecks) {
  const Specification spec = parse("# ours\nchecks = [\"correct\", \"all.allreduce\"]\n");
  EXPECT_THAT(spec.checks, ElementsAre("correct", "all.allreduce"));
  EXPECT_EQ(spec.checks_source, "spec site.toml:2");
  EXPECT_FALSE(of(spec, 1, ""));
}

TEST(Spec, TheNearestReferenceIsTaken) {
  const Specification spec = parse(R"([reference."all.allreduce"]
busbw = [100, -0.5, "none", "GB/s"]
"busbw@64MiB" = [200, -0.05, 0.5, "GB/s"]
"busbw of mpi" = [300, "none", 0.1, "GB/s"]
"busbw@64MiB of mpi" = [400, 0, "none", "GB/s"]
)");
  EXPECT_THAT(spec.checks, IsEmpty());
  EXPECT_EQ(*of(spec, 1, "ring")->least, 50);
  EXPECT_FALSE(of(spec, 1, "ring")->most);
  EXPECT_EQ(of(spec, 1, "ring")->source, "spec site.toml:2");
  EXPECT_EQ(*of(spec, 64 << 20, "ring")->least, 190);
  EXPECT_EQ(*of(spec, 64 << 20, "ring")->most, 300);
  EXPECT_FALSE(of(spec, 1, "mpi")->least);
  EXPECT_DOUBLE_EQ(*of(spec, 1, "mpi")->most, 330);
  EXPECT_EQ(*of(spec, 64 << 20, "mpi")->least, 400);
  EXPECT_EQ(of(spec, 64 << 20, "mpi")->source, "spec site.toml:5");
  EXPECT_FALSE(spec.of({"host.allreduce", kBusbw, 1, "mpi"}));
}

TEST(Spec, ConvertsUnits) {
  const auto least = [](const std::string& number, const std::string& unit) {
    const Specification spec =
        parse("[reference.\"all.allreduce\"]\nbusbw = [" + number + ", 0, \"none\", \"" + unit + "\"]");
    return *of(spec, 1, "")->least;
  };
  EXPECT_DOUBLE_EQ(least("100", "GB/s"), 100);
  EXPECT_DOUBLE_EQ(least("100", "MB/s"), 0.1);
  EXPECT_DOUBLE_EQ(least("400", "Gb/s"), 50);
  EXPECT_DOUBLE_EQ(least("0.4", "Tb/s"), 50);
  const Specification ratio =
      parse("[reference.stragglers]\n\"time/median rank's\" = [110, \"none\", 0, \"%\"]");
  EXPECT_DOUBLE_EQ(*ratio.of({"stragglers", kRatio, 0, "rank 1 on node0"})->most, 1.1);

  static const Check kTimes{"times", "", nullptr, {{"latency", "us"}, {"errors", "errors"}}, nullptr};
  static constexpr std::array<const Check*, 1> kKnown{&kTimes};
  const Specification times = parse_spec(
      "[reference.times]\nlatency = [2, \"none\", 0.5, \"ms\"]\n"
      "errors = [0, \"none\", 0, \"errors\"]",
      "site.toml", kKnown);
  EXPECT_DOUBLE_EQ(*times.of({"times", {"latency", "us"}, 0, ""})->most, 3000);
  EXPECT_DOUBLE_EQ(*times.of({"times", {"errors", "errors"}, 0, ""})->most, 0);
}

TEST(Spec, TheOneInTheDocumentationIsRead) {
  const std::string text = read_file(tests_folder() / "../docs/acceptance.md");
  const std::string begin = "```toml\n";
  const std::size_t at = text.find(begin) + begin.size();
  const Specification spec = parse(text.substr(at, text.find("```", at) - at));
  EXPECT_THAT(spec.checks, SizeIs(4));
  ASSERT_THAT(spec.references, SizeIs(5));
  EXPECT_DOUBLE_EQ(*of(spec, 64 << 20, "ring")->least, 0.95 * 365);
  EXPECT_DOUBLE_EQ(*spec.of({"stragglers", kRatio, 0, ""})->most, 1.1);
}

TEST(Spec, WhatIsNoSpecificationIsRefused) {
  EXPECT_THAT(refused("checks = [\"correct\"\n\n[x]"), HasSubstr("this is not TOML"));
  EXPECT_THAT(refused("a = 1\na = 2"), StartsWith("site.toml:2: this is not TOML"));
  EXPECT_THAT(refused(std::string("\x7f"
                                  "ELF\x01\x00\x00",
                                  7)),
              StartsWith("site.toml:1: this is not TOML"));
  EXPECT_THAT(refused("\"\xff\" = 1"), StartsWith("site.toml:1: this is not TOML"));
  EXPECT_THAT(refused("# nothing"), HasSubstr("'site.toml' asks for nothing"));
  EXPECT_THAT(refused("[reference.stragglers]"), HasSubstr("'site.toml' asks for nothing"));
  EXPECT_THAT(refused("#" + std::string(40'000, ' ')),
              HasSubstr("has 40001 bytes, and a specification at most"));
  EXPECT_THAT(refused("\n\ncheck = [\"correct\"]"),
              StartsWith("site.toml:3: unknown key 'check'; did you mean checks?"));
}

TEST(Spec, AChecksListThatIsNoneIsRefused) {
  for (const char* value : {"[]", "1", "\"correct\"", "{}"})
    EXPECT_THAT(refused("checks = " + std::string(value)),
                StartsWith("site.toml:1: 'checks' must be a list"));
  EXPECT_THAT(refused("checks = [\n\"correct\",\n1]"), StartsWith("site.toml:3: 'checks' has a number"));
  EXPECT_THAT(refused("checks = [\"hosts.alik\"]"),
              HasSubstr("unknown check 'hosts.alik'; did you mean hosts.alike?"));
}

TEST(Spec, AReferenceToWhatThereIsNotIsRefused) {
  EXPECT_THAT(refused("[reference.\"all.allreduc\"]\nbusbw = []"), HasSubstr("did you mean all.allreduce?"));
  EXPECT_THAT(refused("[reference.correct]\nbusbw = []"),
              StartsWith("site.toml:1: correct measures nothing"));
  EXPECT_THAT(refused("reference = 1"), StartsWith("site.toml:1: 'reference' must be tables"));
  EXPECT_THAT(refused("[reference]\nstragglers = 1"),
              StartsWith("site.toml:2: 'reference.stragglers' must be a table"));
  const auto key = [](const std::string& name) {
    return refused("[reference.\"all.allreduce\"]\n\n\"" + name + "\" = [1, 0, \"none\", \"GB/s\"]");
  };
  EXPECT_THAT(key("buswb@1K"),
              StartsWith("site.toml:3: unknown quantity of all.allreduce 'buswb'; did you mean busbw?"));
  EXPECT_THAT(key("busbw2"), HasSubstr("unknown quantity"));
  EXPECT_THAT(key("busbw@"), HasSubstr("size '' is not a size"));
  EXPECT_THAT(key("busbw@64XB of mpi"), HasSubstr("size '64XB' is not a size"));
  EXPECT_THAT(key("busbw@-1"), HasSubstr("out of range"));
  EXPECT_THAT(key("busbw@16777216T"), HasSubstr("out of range"));
  EXPECT_THAT(key("busbw@0"), HasSubstr("no payload has 0 bytes"));
  EXPECT_THAT(refused("[reference.\"all.allreduce\"]\n\"busbw@1M\" = [1, 0, 0, \"GB/s\"]\n"
                      "\"busbw@1024K\" = [1, 0, 0, \"GB/s\"]"),
              HasSubstr("says again what"));
}

TEST(Spec, AThresholdThatCannotBeIsRefused) {
  for (const char* value : {"1", "[]", "[1, 0, 0]", "[1, 0, 0, \"GB/s\", 1]", "{}", "\"1 GB/s\""})
    EXPECT_THAT(refused_reference(value), HasSubstr("'busbw' must be [reference, lower, upper, unit]"));
  for (const char* number : {"\"1\"", "true", "nan", "inf", "-1", "1e300", "[]"})
    EXPECT_THAT(refused_reference("[" + std::string(number) + ", 0, 0, \"GB/s\"]"),
                HasSubstr("the reference of 'busbw' must be a number from 0"));
  EXPECT_THAT(refused_reference("[1, \"none\", \"none\", \"GB/s\"]"), HasSubstr("'busbw' limits nothing"));
  for (const char* lower : {"-1", "-1.0", "-2", "0.05", "1"})
    EXPECT_THAT(refused_reference("[1, " + std::string(lower) + ", \"none\", \"GB/s\"]"),
                HasSubstr("lower of 'busbw' must be a part of the reference from above -1 to 0"));
  for (const char* upper : {"-0.05", "-1", "1e300"})
    EXPECT_THAT(refused_reference("[1, \"none\", " + std::string(upper) + ", \"GB/s\"]"),
                HasSubstr("upper of 'busbw' must be a part of the reference from 0"));
  for (const char* limit : {"nan", "-inf", "true", "\"\"", "\"5%\"", "[]"}) {
    EXPECT_THAT(refused_reference("[1, " + std::string(limit) + ", 0, \"GB/s\"]"),
                HasSubstr("lower of 'busbw'"));
    EXPECT_THAT(refused_reference("[1, 0, " + std::string(limit) + ", \"GB/s\"]"),
                HasSubstr("upper of 'busbw'"));
  }
  EXPECT_THAT(refused_reference("[0, 0, \"none\", \"GB/s\"]"), HasSubstr("which it always is"));
  for (const char* unit : {"\"GB\"", "\"us\"", "\"\"", "\"%\"", "\"1GB/s\"", "1"})
    EXPECT_THAT(refused_reference("[1, 0, 0, " + std::string(unit) + "]"),
                HasSubstr("'busbw' is measured in \"GB/s\""));
}

TEST(Spec, OfAFileThatIsNoneIsRefused) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path();
  EXPECT_THAT(refusal([&] { read_spec(folder.string(), checks()); }), HasSubstr("not a regular file"));
  EXPECT_THAT(refusal([&] { read_spec(folder / "there is no such file", checks()); }),
              HasSubstr("there is no file"));
}

CheckRow measured(const std::string& subject, std::uint64_t size) {
  CheckRow row;
  row.check = "all.allreduce";
  row.subject = subject;
  row.quantity = "busbw";
  row.size_bytes = size;
  row.value = exact_timing(1);
  return row;
}

TEST(Spec, WhatItSaysOfOtherSizesDoesNotPassUnseen) {
  const Specification spec = parse(
      "[reference.\"all.allreduce\"]\nbusbw = [1, 0, 0, \"GB/s\"]\n"
      "\"busbw@64M\" = [1, 0, 0, \"GB/s\"]\n\"busbw of mpi\" = [1, 0, 0, \"GB/s\"]\n"
      "[reference.stragglers]\n\"time/median rank's\" = [1, 0, 0, \"\"]");
  EXPECT_THAT(spec.unmet(std::vector{measured("mpi", 64 << 20)}), IsEmpty());
  EXPECT_THAT(spec.unmet(std::vector<CheckRow>{}), IsEmpty());  // the check did not run, or was skipped
  const std::vector<CheckRow> unmet =
      spec.unmet(std::vector{measured("mpi", 32 << 20), measured("ring", 32 << 20)});
  ASSERT_THAT(unmet, SizeIs(1));
  EXPECT_EQ(unmet[0].verdict, Verdict::missing);
  EXPECT_EQ(unmet[0].subject, "busbw@64M");
  EXPECT_EQ(unmet[0].why, "spec site.toml:3 has a reference for this, and it was not measured.");
  EXPECT_EQ(unmet[0].remedy, "Correct the reference; measured were busbw@32MiB.");
  const std::vector<CheckRow> of_mpi = spec.unmet(std::vector{measured("ring", 64 << 20)});
  ASSERT_THAT(of_mpi, SizeIs(1));
  EXPECT_EQ(of_mpi[0].remedy, "Correct the reference; measured were busbw@64MiB of ring.");
}

}  // namespace
}  // namespace polyring
