#include "reports/process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "reports/files.hpp"
#include "tests/ends.hpp"
#include "tests/reports/examples.hpp"
#include "topology/error.hpp"

namespace polyring {
namespace {

using Words = std::vector<std::string>;

TEST(Process, CollectsWhatAProgramPrints) {
  const std::vector<std::string> command{"sh", "-c", "echo out; echo err >&2; exit 3"};
  const ProcessResult result = run_process(command);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(result.output, "out\n");
  EXPECT_EQ(result.errors, "err\n");
}

TEST(Process, ThatDoesNotExistOrIsKilledIsReported) {
  EXPECT_EQ(run_process(std::vector<std::string>{"/nonexistent/program"}).exit_code, 127);
  EXPECT_EQ(run_process(std::vector<std::string>{"sh", "-c", "kill -9 $$"}).exit_code, 128 + 9);
}

TEST(Process, SeveralRunAtTheSameTime) {
  // Each ends when it sees the other.
  const examples::TemporaryFolder folder;
  const auto meet = [&](std::string own, std::string other, int code) {
    const std::string names = (folder / own).string() + " " + (folder / other).string();
    return Words{"sh", "-c",
                 fmt::format("set -- {}; touch $1; until [ -e $2 ]; do sleep 0.05; done; echo {}; exit {}",
                             names, own, code)};
  };
  const auto results = run_processes(
      std::vector<Words>{meet("a", "b", 0), meet("b", "a", 2), {"/nonexistent/program"}}, std::nullopt);
  ASSERT_EQ(results.size(), 3U);
  EXPECT_EQ(results[0].output, "a\n");
  EXPECT_EQ(results[1].output, "b\n");
  EXPECT_EQ(results[1].exit_code, 2);
  EXPECT_EQ(results[2].exit_code, 127);
  EXPECT_THAT(results[2].errors, ::testing::HasSubstr("/nonexistent/program"));
}

TEST(Process, MoreThanRunAtOnceAllRun) {
  const std::vector<Words> programs(150, Words{"sh", "-c", "echo x"});
  for (const ProcessResult& result : run_processes(programs, std::nullopt)) EXPECT_EQ(result.output, "x\n");
}

TEST(Process, IsEndedWithItsChildrenWhenItsTimeIsOver) {
  const auto results =
      run_processes(std::vector<Words>{{"sh", "-c", "sleep 1000 & echo $!; wait"}, {"true"}}, Seconds{2});
  EXPECT_TRUE(results[0].timed_out);
  EXPECT_EQ(results[0].exit_code, 128 + SIGTERM);
  const pid_t child = std::stoi(results[0].output);
  EXPECT_TRUE(ends(child));
  EXPECT_FALSE(results[1].timed_out);
}

TEST(Process, IsKilledWhenItDoesNotWantToEnd) {
  const auto results = run_processes(
      std::vector<Words>{{"sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"}}, Seconds{0.2});
  EXPECT_TRUE(results[0].timed_out);
  EXPECT_EQ(results[0].exit_code, 128 + SIGKILL);
}

TEST(Process, EndsWithUsWhenWeAreInterrupted) {
  const examples::TemporaryFolder folder;
  const std::string began = (folder / "began").string();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    run_process(Words{"sh", "-c",
                      "echo $$ > '" + began + ".part'; mv '" + began + ".part' '" + began + "'; sleep 1000"});
    _exit(0);
  }
  while (!std::filesystem::exists(began)) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(child, SIGINT);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGINT);
  EXPECT_TRUE(ends(std::stoi(read_file(began))));
}

TEST(Foreground, GivesTheProgramsExitCode) {
  EXPECT_EQ(run_in_foreground(Words{"sh", "-c", "exit 3"}), 3);
  EXPECT_EQ(run_in_foreground(Words{"sh", "-c", "kill -9 $$"}), 128 + 9);
  EXPECT_THROW(run_in_foreground(Words{"/nonexistent/program"}), Error);
}

// As MPICH's mpiexec at times does.
TEST(Foreground, TakesAnInterruptedProgramForNoSuccess) {
  const examples::TemporaryFolder folder;
  const std::string began = (folder / "began").string();
  for (const int signal_number : {SIGINT, SIGTERM}) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const std::string until_told =
          "trap 'exit 0' INT TERM; touch '" + began + "'; while :; do sleep 0.02; done";
      run_in_foreground(Words{"sh", "-c", until_told});
      _exit(0);
    }
    while (!std::filesystem::exists(began)) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    kill(child, signal_number);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
    EXPECT_EQ(WTERMSIG(status), signal_number);
    std::filesystem::remove(began);
  }
}

}  // namespace
}  // namespace polyring
