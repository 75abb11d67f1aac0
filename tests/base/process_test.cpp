#include "base/process.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include "base/error.hpp"
#include "base/files.hpp"
#include "tests/ends.hpp"
#include "tests/reports/examples.hpp"

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

TEST(Process, ThatPrintsWithoutEndIsEnded) {
  const auto results =
      run_processes(std::vector<Words>{{"yes"}, {"sh", "-c", "yes >&2"}, {"echo", "short"}}, std::nullopt);
  EXPECT_TRUE(results[0].too_long);
  EXPECT_FALSE(results[0].timed_out);
  EXPECT_NE(results[0].exit_code, 0);
  EXPECT_EQ(results[0].output.size(), kMostPrinted);
  EXPECT_TRUE(results[1].too_long);
  EXPECT_EQ(results[1].errors.size(), kMostPrinted);
  EXPECT_FALSE(results[2].too_long);
  EXPECT_EQ(results[2].output, "short\n");
}

TEST(Process, MayPrintALot) {
  const ProcessResult result =
      run_process(Words{"sh", "-c", "head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2; echo end"});
  EXPECT_EQ(result.output.size(), 3'000'004U);
  EXPECT_EQ(result.errors.size(), 2'000'000U);
  EXPECT_FALSE(result.too_long);
}

// As a connection that ssh keeps open for later does.
TEST(Process, IsNotWaitedForLongerThanItRuns) {
  const ProcessResult result = run_process(Words{"sh", "-c", "sleep 1000 & echo $!"});
  EXPECT_EQ(result.exit_code, 0);
  const pid_t left = std::stoi(result.output);
  EXPECT_EQ(kill(left, 0), 0) << "it has ended, and was waited for";
  kill(left, SIGKILL);
}

/// Does this in a process of its own, which has inherited what `inherit` does; whether it returned true.
bool holds_where(const std::function<void()>& inherit, const std::function<bool()>& action) {
  const pid_t child = fork();
  EXPECT_GE(child, 0);
  if (child == 0) {
    inherit();
    _exit(action() ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(Process, GivesItsExitCodeWhereEndsOfChildrenAreForgotten) {
  const auto ignore = [] { std::signal(SIGCHLD, SIG_IGN); };
  EXPECT_TRUE(holds_where(ignore, [] { return run_process(Words{"sh", "-c", "exit 3"}).exit_code == 3; }));
  EXPECT_TRUE(holds_where(ignore, [] { return run_in_foreground(Words{"sh", "-c", "exit 3"}) == 3; }));
  const auto restored = [] {
    run_process(Words{"true"});
    return std::signal(SIGCHLD, SIG_DFL) == SIG_IGN;
  };
  EXPECT_TRUE(holds_where(ignore, restored));
}

TEST(Process, HasTheUsualSignals) {
  const auto ignore = [] {
    for (const int number : {SIGPIPE, SIGXFSZ, SIGCHLD}) std::signal(number, SIG_IGN);
  };
  const Words by_signal{"sh", "-c", "kill -PIPE $$"};
  EXPECT_TRUE(holds_where(ignore, [&] { return run_process(by_signal).exit_code == 128 + SIGPIPE; }));
  EXPECT_TRUE(holds_where(ignore, [&] { return run_in_foreground(by_signal) == 128 + SIGPIPE; }));
}

TEST(Process, MakesDoWithFewOpenFiles) {
  rlimit usual{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
  const auto few = [&usual](rlim_t files) {
    return [files, &usual] {
      const rlimit limit{files, usual.rlim_max};
      setrlimit(RLIMIT_NOFILE, &limit);
    };
  };
  const auto all_run = [] {
    const auto results = run_processes(std::vector<Words>(100, Words{"echo", "x"}), std::nullopt);
    return std::ranges::all_of(results, [](const ProcessResult& result) { return result.output == "x\n"; });
  };
  EXPECT_TRUE(holds_where(few(40), all_run));
  const auto says_why = [&usual] {
    try {
      run_process(Words{"true"});
    } catch (const Error& error) {
      setrlimit(RLIMIT_NOFILE, &usual);  // UBSan opens a pipe to look at what it is not sure of
      return error.code() == ExitCode::not_available &&
             std::string(error.what()).find("ulimit -n") != std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(holds_where(few(4), says_why));
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
