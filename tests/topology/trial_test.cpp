#include "topology/probe/trial.hpp"

#include <unistd.h>

#include <chrono>
#include <csignal>
#include <stdexcept>

#include "tests/topology/support.hpp"

namespace polyring::probe {
namespace {

TEST(Trial, TellsHowAnActionEnded) {
  EXPECT_EQ(try_out([] {}, {5}), Ending::by_itself);
  EXPECT_EQ(try_out([] { throw std::runtime_error("an answer too"); }, {5}), Ending::by_itself);
  EXPECT_EQ(try_out([] { std::raise(SIGSEGV); }, {5}), Ending::crashed);
  EXPECT_EQ(try_out([] { _exit(0); }, {5}), Ending::crashed);
}

TEST(Trial, EndsWhatHangsEvenWhenItHoldsOutAgainstAlarms) {
  const auto start = std::chrono::steady_clock::now();
  const auto hang = [] {
    std::signal(SIGALRM, SIG_IGN);
    std::signal(SIGTERM, SIG_IGN);
    while (true) pause();
  };
  EXPECT_EQ(try_out(hang, {0.1}), Ending::out_of_time);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
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

}  // namespace
}  // namespace polyring::probe
