// Trying out what may crash, many times in a few children.
#include "topology/probe/trial_answers.hpp"

#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "tests/topology/support.hpp"

namespace polyring::probe {
namespace {

constexpr unsigned kSeconds = 20;

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
