#include "bench/session/interrupt.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <thread>

namespace polyring {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ExitedWithCode;
using testing::KilledBySignal;

constexpr seconds kForEver{60};

void say(int signal) { std::fprintf(stderr, "acted on %d\n", signal); }

void wait_here() { std::this_thread::sleep_for(kForEver); }

TEST(InterruptHandler, ActsAndEndsWithTheShellsCode) {
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}}) {
    const auto interrupted = [number = signal] {
      const InterruptHandler handler(say);
      std::raise(number);
      wait_here();
    };
    EXPECT_EXIT(interrupted(), ExitedWithCode(code), "acted on " + std::to_string(signal));
  }
}

TEST(InterruptHandler, EndsAtOnceWithTheSecondSignal) {
  const auto interrupted = [] {
    const InterruptHandler handler([](int) { wait_here(); });
    std::raise(SIGINT);
    std::this_thread::sleep_for(milliseconds(400));
    std::raise(SIGTERM);
    wait_here();
  };
  EXPECT_EXIT(interrupted(), ExitedWithCode(143), "");
}

TEST(InterruptHandler, TakesSignalsThatComeTogetherForOne) {
  const auto interrupted = [] {
    const InterruptHandler handler([](int signal) {
      std::this_thread::sleep_for(milliseconds(50));
      say(signal);
    });
    std::raise(SIGINT);
    std::raise(SIGINT);
    std::raise(SIGTERM);
    wait_here();
  };
  EXPECT_EXIT(interrupted(), ExitedWithCode(130), "acted on 2");
}

TEST(InterruptHandler, LeavesTheUsualEffectBehind) {
  const auto interrupted = [] {
    { const InterruptHandler handler(say); }
    std::raise(SIGTERM);
    wait_here();
  };
  EXPECT_EXIT(interrupted(), KilledBySignal(SIGTERM), "");
}

TEST(InterruptHandler, LeavesASignalIgnored) {
  const auto interrupted = [] {
    std::signal(SIGINT, SIG_IGN);
    const InterruptHandler handler(say);
    std::raise(SIGINT);
    std::raise(SIGTERM);
    wait_here();
  };
  EXPECT_EXIT(interrupted(), ExitedWithCode(143), "acted on 15");
}

}  // namespace
}  // namespace polyring
