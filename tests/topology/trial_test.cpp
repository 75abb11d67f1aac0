#include "topology/inventory/probe/trial.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

#include "tests/ends.hpp"
#include "tests/topology/support.hpp"

namespace polyring::probe {
namespace {

constexpr unsigned kSeconds = 20;

TEST(Trial, TellsHowAnActionEnded) {
  EXPECT_EQ(try_out([] {}, {5}), Ending::by_itself);
  EXPECT_EQ(try_out([] { throw std::runtime_error("an answer too"); }, {5}), Ending::by_itself);
  EXPECT_EQ(try_out([] { std::raise(SIGSEGV); }, {5}), Ending::crashed);
  EXPECT_EQ(try_out([] { _exit(0); }, {5}), Ending::crashed);
}

TEST(Trial, EndsWhatHangsEvenWhenItHoldsOutAgainstAlarms) {
  const auto hang = [] {
    std::signal(SIGALRM, SIG_IGN);
    std::signal(SIGTERM, SIG_IGN);
    while (true) pause();
  };
  EXPECT_EQ(try_out(hang, {0.1}), Ending::out_of_time);
}

TEST(Trial, LeavesNoChildBehind) {
  const Shared<pid_t> child;
  const auto hang = [&] {
    *child = getpid();
    while (true) pause();
  };
  EXPECT_EQ(try_out(hang, {0.1}), Ending::out_of_time);
  ASSERT_GT(*child, 0);
  EXPECT_EQ(kill(*child, SIGKILL), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(Trial, PrintsNothing) {
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(try_out(
                [] {
                  if (write(STDOUT_FILENO, "out", 3) + write(STDERR_FILENO, "err", 3) != 6) std::abort();
                },
                {5}),
            Ending::by_itself);
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST(Trial, EndsChildrenOfTheChildToo) {
  const Shared<pid_t> grandchild;
  const auto hang = [&] {
    *grandchild = getpid();
    while (true) pause();
  };
  EXPECT_EQ(try_out([&] { try_out(hang, {60}); }, {0.5}), Ending::out_of_time);
  ASSERT_GT(*grandchild, 0);
  EXPECT_TRUE(ends(*grandchild));
}

TEST(Trial, GivesTheAnswer) {
  const std::string long_one(1 << 20, 'x');
  EXPECT_EQ(try_answer([&] { return long_one; }, {20}).text, long_one);
  EXPECT_EQ(try_answer([] { return std::string(); }, {20}).ending, Ending::by_itself);
  const TriedAnswer thrown = try_answer([]() -> std::string { throw std::runtime_error("none"); }, {20});
  EXPECT_EQ(thrown.ending, Ending::by_itself);
  EXPECT_EQ(thrown.text, "");
  const auto crash = []() -> std::string { std::abort(); };
  EXPECT_EQ(try_answer(crash, {20}).ending, Ending::crashed);
  const auto hang = []() -> std::string {
    while (true) pause();
  };
  EXPECT_EQ(try_answer(hang, {0.1}).ending, Ending::out_of_time);
}

// As MPI and sanitizers set them.
TEST(Trial, IsCrashedWhateverTheProgramDoesAboutSignals) {
  const auto before = std::signal(SIGSEGV, [](int) { _exit(42); });
  EXPECT_EQ(try_out([] { std::raise(SIGSEGV); }, {5}), Ending::crashed);
  std::signal(SIGSEGV, before);
}

TEST(Trial, SaysOnceThatItTakesLong) {
  int said = 0;
  const auto wait = [&] { ++said; };
  EXPECT_EQ(try_out([] {}, {5}, wait), Ending::by_itself);
  EXPECT_EQ(try_out([] { pause(); }, {0.1}, wait), Ending::out_of_time);
  EXPECT_EQ(said, 0) << "both ended before kLongWait";
  EXPECT_EQ(try_out([] { sleep(3); }, {20}, wait), Ending::by_itself);
  EXPECT_EQ(said, 1);
}

TEST(Trial, LeavesItsResultsInSharedMemory) {
  const Shared<int> shared;
  int own = 1;
  try_out(
      [&] {
        *shared = 7;
        own = 7;
        std::raise(SIGABRT);
      },
      {5});
  EXPECT_EQ(*shared, 7);
  EXPECT_EQ(own, 1);
}

TEST(TrialAnswers, AreThoseOfTheQuestions) {
  const auto answers = trial_answers(
      100, [](std::size_t i) { return std::string(i * i, 'x'); }, kSeconds);
  ASSERT_EQ(answers.size(), 100u);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ASSERT_TRUE(answers[i]) << i;
    EXPECT_EQ(answers[i]->size(), i * i);
  }
  EXPECT_TRUE(trial_answers(
                  0, [](std::size_t) { return std::string(); }, kSeconds)
                  .empty());
}

TEST(TrialAnswers, OutliveCrashesAndExceptions) {
  const auto answers = trial_answers(
      50,
      [](std::size_t i) {
        if (i % 7 == 3) raise(SIGKILL);
        if (i % 7 == 5) usage_error("no {}", i);
        if (i % 7 == 6) _exit(0);
        return std::to_string(i);
      },
      kSeconds);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const bool fine = i % 7 != 3 && i % 7 != 5 && i % 7 != 6;
    EXPECT_EQ(answers[i].has_value(), fine) << i;
    EXPECT_EQ(answers[i].value_or("none"), fine ? std::to_string(i) : "none") << i;
  }
}

// What a parent may leave: ends of children that are forgotten, and an alarm that never rings.
TEST(TrialAnswers, DoNotDependOnWhatIsInherited) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::signal(SIGCHLD, SIG_IGN);
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, nullptr);
    const auto answer = [](std::size_t i) {
      while (i == 1) pause();
      return std::to_string(i);
    };
    const auto answers = trial_answers(3, answer, 1);
    const bool answered = answers[0] == "0" && !answers[1] && answers[2] == "2";
    const bool crashed = try_out([] { std::raise(SIGSEGV); }, {20}) == Ending::crashed;
    const bool ended = try_out([] {}, {20}) == Ending::by_itself;
    _exit(answered && crashed && ended ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(TrialAnswers, DontWaitForOneThatHangs) {
  const auto answers = trial_answers(
      4,
      [](std::size_t i) {
        while (i == 1) pause();
        return std::to_string(i);
      },
      1);
  EXPECT_FALSE(answers[1]);
  for (const std::size_t i : {0u, 2u, 3u}) EXPECT_TRUE(answers[i]) << i;
}

}  // namespace
}  // namespace polyring::probe
