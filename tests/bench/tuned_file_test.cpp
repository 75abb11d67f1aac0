#include "bench/plans/tuned_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/files.hpp"
#include "tests/bench/damaged_files.hpp"
#include "tests/reports/examples.hpp"

namespace polyring {
namespace {

using examples::TemporaryFolder;
using ::testing::HasSubstr;

TunedPlan choice(std::uint64_t payload, int ranks = 4) {
  return {{"a processor", 8, "", ranks, 1, ranks, "shared memory"},
          {payload},
          Plan{"multi-ring", {ranks / 2, 2}, {"direct", "ring"}, 2, {65536}},
          false,
          12.5,
          20};
}

std::string refused(const std::string& text) { return refusal_of(parse_tuned, text); }

/// The text of one choice with something else in it.
std::string damaged(const std::string& from, const std::string& to) {
  return changed(tuned_text(std::vector{choice(1 << 20)}), from, to);
}

/// An environment variable with another value, or none, for as long as this lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* before = ::getenv(name)) before_ = before;
    value == nullptr ? ::unsetenv(name) : ::setenv(name, value, 1);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  ~Variable() { before_ ? ::setenv(name_, before_->c_str(), 1) : ::unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(TunedFile, IsReadAsItWasWritten) {
  std::vector<TunedPlan> choices{choice(1024), choice(1 << 20), choice(1 << 20, 16), choice(2 << 20)};
  choices.back().plan.orders = {{1, 0}, {0, 1}};
  choices[1].place.device = DataDevice::cuda;
  EXPECT_EQ(parse_tuned(tuned_text(choices), "a file"), choices);
  // The first files knew the CPU alone.
  const std::vector<TunedPlan> first = parse_tuned(damaged(",\"device\":\"cpu\"", ""), "a file");
  EXPECT_EQ(first, std::vector{choice(1 << 20)});
  EXPECT_TRUE(parse_tuned(tuned_text({}), "a file").empty());
}

TEST(TunedFile, ThatIsDamagedIsRefused) {
  const std::string whole = tuned_text(std::vector{choice(1 << 20)});
  EXPECT_THAT(refused(""), HasSubstr("not whole JSON"));
  EXPECT_THAT(refused(whole.substr(0, whole.size() / 2)), HasSubstr("not whole JSON"));
  EXPECT_THAT(refused("[]"), HasSubstr("not a file of polyring tune"));
  EXPECT_THAT(refused(damaged("polyring-tuned", "polyring-result")),
              HasSubstr("not a file of polyring tune"));
  EXPECT_THAT(refused(damaged("\"version\": 1", "\"version\": 2")), HasSubstr("newer polyring"));
  EXPECT_THAT(refused(damaged("\"version\": 1", "\"version\": \"1\"")), HasSubstr("no version"));
  EXPECT_THAT(refused(damaged("\"choices\"", "\"rows\"")), HasSubstr("no choices"));
  const std::pair<const char*, const char*> changes[] = {
      {"\"ranks\":4", "\"ranks\":0"},
      {"\"ranks\":4", "\"ranks\":-4"},
      {"\"ranks\":4", "\"ranks\":4.5"},
      {"\"ranks\":4", "\"ranks\":99999999999"},
      {"\"ranks\":4", "\"ranks\":8"},  // than the plan has
      {"\"machine\":\"a processor\"", "\"machine\":1"},
      {"\"transport\":", "\"wires\":"},
      {"\"device\":\"cpu\"", "\"device\":\"abacus\""},
      {"\"dims\":\"2x2\"", "\"dims\":\"2x\""},
      {"\"patterns\":\"direct+ring\"", "\"patterns\":\"direct\""},
      {"\"patterns\":\"direct+ring\"", "\"patterns\":\"direct+nonsense\""},
      {"\"lanes\":2", "\"lanes\":0"},
      {"\"lanes\":2", "\"lanes\":2000"},
      {"\"chunk_bytes\":65536", "\"chunk_bytes\":1"},
      {"\"size_bytes\":1048576", "\"size_bytes\":0"},
      {"\"is_default\":false", "\"is_default\":0"},
      {"\"time_us\":12.5", "\"time_us\":0"},
      {"\"default_time_us\":20.0", "\"default_time_us\":\"20\""},
  };
  for (const auto& [from, to] : changes) {
    EXPECT_THAT(refused(damaged(from, to)), HasSubstr("choices[0]")) << to;
  }
}

TEST(TunedFile, KeepsWhatAnotherTuneFound) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "tuned.json";
  add_to_tuned_file(path, std::vector{choice(1024), choice(4096)});
  TunedPlan again = choice(4096);
  again.plan.lanes = 4;
  add_to_tuned_file(path, std::vector{again, choice(1024, 8)});
  EXPECT_EQ(parse_tuned(read_file(path), "a file"), (std::vector{choice(1024), again, choice(1024, 8)}));
  const std::filesystem::directory_iterator files(folder.path());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "a temporary file was left behind";
}

TEST(TunedFile, KeepsTheChoicesOfAllThatAddAtOnce) {
  constexpr int kProcesses = 6;
  const TemporaryFolder folder;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    children.push_back(::fork());
    ASSERT_GE(children.back(), 0);
    if (children.back() != 0) continue;
    for (std::uint64_t payload = 1; payload <= 10; ++payload)
      add_to_tuned_file(folder / "tuned.json", std::vector{choice(payload << 10, 4 + 2 * i)});
    ::_exit(0);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(parse_tuned(read_file(folder / "tuned.json"), "a file").size(), 10U * kProcesses);
}

TEST(TunedFile, ThatIsBrokenIsNotReplaced) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "tuned.json";
  write_file(path, "{");
  EXPECT_THROW(add_to_tuned_file(path, std::vector{choice(1024)}), Error);
  EXPECT_EQ(read_file(path), "{");
}

TEST(TunedFile, IsWhereTheEnvironmentSays) {
  const Variable home("HOME", "/home/someone");
  const Variable settings("XDG_CONFIG_HOME", nullptr);
  const Variable named("POLYRING_TUNED", "");
  EXPECT_EQ(default_tuned_file(), "/home/someone/.config/polyring/tuned.json");
  const Variable other_settings("XDG_CONFIG_HOME", "/settings");
  EXPECT_EQ(default_tuned_file(), "/settings/polyring/tuned.json");
  const Variable other_name("POLYRING_TUNED", "choices.json");
  EXPECT_EQ(default_tuned_file(), "choices.json");
  const Variable none("POLYRING_TUNED", "none");
  EXPECT_EQ(default_tuned_file(), std::nullopt);
  const Variable no_name("POLYRING_TUNED", nullptr);
  const Variable no_settings("XDG_CONFIG_HOME", nullptr);
  const Variable no_home("HOME", nullptr);
  EXPECT_EQ(default_tuned_file(), std::nullopt);
}

}  // namespace
}  // namespace polyring
