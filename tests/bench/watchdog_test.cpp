#include "bench/watchdog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include "topology/error.hpp"

namespace polyring {
namespace {

using namespace std::chrono_literals;

/// What a watchdog ends the job with.
struct Ended {
  std::promise<int> promise;
  std::future<int> code = promise.get_future();
  bool once = false;

  std::function<void(int)> callback() {
    return [this](int with) {
      alarm(0);  // this process is to go on
      if (!std::exchange(once, true)) promise.set_value(with);
    };
  }
};

TEST(Watchdog, EndsTheJobWhenACallDoesNotReturn) {
  Ended ended;
  testing::internal::CaptureStderr();
  {
    Watchdog watchdog("rank 1 (node07)", Seconds{0.1}, ended.callback());
    watchdog.watch("MPI_Allreduce");
    ASSERT_EQ(ended.code.wait_for(20s), std::future_status::ready);
  }
  EXPECT_EQ(ended.code.get(), static_cast<int>(ExitCode::timeout));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::StartsWith("polyring: rank 1 (node07): MPI_Allreduce did not finish within 100 ms"));
}

TEST(Watchdog, LetsBeWhatReturnedAndStartsAnewWithEachCall) {
  Ended ended;
  Watchdog watchdog("rank 0", Seconds{0.5}, ended.callback());
  for (int call = 0; call < 4; ++call) {
    watchdog.watch("a call");
    std::this_thread::sleep_for(600ms);  // less than its patience, but not all of them together
  }
  watchdog.rest();
  EXPECT_EQ(ended.code.wait_for(2s), std::future_status::timeout);
}

TEST(Watchdog, NoticesThatTheProcessWasStopped) {
  Watchdog watchdog("rank 0", Seconds{60}, [](int) {});
  const auto begin = Watchdog::Clock::now();
  const std::string resume = "(sleep 2; kill -CONT " + std::to_string(getpid()) + ") &";
  ASSERT_EQ(std::system(resume.c_str()), 0);  // NOLINT(cert-env33-c): a shell outlives the pause
  ASSERT_EQ(kill(getpid(), SIGSTOP), 0);
  const auto end = Watchdog::Clock::now();
  std::this_thread::sleep_for(500ms);
  const double paused = watchdog.paused_between(begin, end).value;
  EXPECT_GT(paused, 1);
  EXPECT_LE(paused, std::chrono::duration<double>(end - begin).count());
}

}  // namespace
}  // namespace polyring
