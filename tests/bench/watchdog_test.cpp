#include "bench/session/watchdog.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <utility>

namespace polyring {
namespace {

using namespace std::chrono_literals;

constexpr Watch::Time kStart{1000s};

/// Looks as often as a Watchdog does, up to `until`; the first sentence, and when it came.
std::pair<std::string, Watch::Time> look_until(Watch& watch, Watch::Time from, Watch::Time until) {
  for (Watch::Time now = from; now <= until; now += Watch::kPeriod) {
    if (const auto sentence = watch.look(now)) return {*sentence, now};
  }
  return {{}, until};
}

TEST(Watch, SaysWhatDoesNotReturn) {
  Watch watch(kStart);
  watch.begin({"MPI_Allreduce", Seconds{4}}, kStart);
  const auto [sentence, when] = look_until(watch, kStart, kStart + 60s);
  EXPECT_EQ(
      sentence,
      "MPI_Allreduce did not finish within 4.00 s; see whether all ranks still run, or raise --timeout");
  EXPECT_EQ(when, kStart + 7s) << "an error that names a rank shall come first";
  EXPECT_EQ(look_until(watch, when, when + 60s).first, "") << "it has been said";
}

TEST(Watch, HasAdviceForEachCall) {
  Watch watch(kStart);
  watch.begin({"starting MPI", Seconds{2}, "see whether all ranks have been started"}, kStart);
  EXPECT_EQ(look_until(watch, kStart, kStart + 60s).first,
            "starting MPI did not finish within 2.00 s; see whether all ranks have been started, or raise "
            "--timeout");
}

TEST(Watch, LetsBeWhatReturnedAndStartsAnewWithEachCall) {
  Watch watch(kStart);
  Watch::Time now = kStart;
  for (int call = 0; call < 10; ++call) {
    watch.begin({"a call", Seconds{4}}, now);
    EXPECT_EQ(look_until(watch, now, now + 6s).first, "") << call;  // less than it is allowed
    now += 6s;
  }
  watch.end();
  EXPECT_EQ(look_until(watch, now, now + 60s).first, "");
}

TEST(Watch, NoticesThatTheProcessWasStopped) {
  Watch watch(kStart);
  watch.look(kStart + 200ms);
  watch.look(kStart + 410ms);  // as late as always
  EXPECT_EQ(watch.paused_between(kStart, kStart + 60s), Seconds{0});
  watch.look(kStart + 2500ms);  // for 610 ms
  watch.look(kStart + 2700ms);
  const auto paused = [&](std::chrono::milliseconds begin, std::chrono::milliseconds end) {
    return watch.paused_between(kStart + begin, kStart + end).value;
  };
  EXPECT_DOUBLE_EQ(paused(0ms, 60'000ms), 1.89);
  EXPECT_DOUBLE_EQ(paused(1000ms, 2000ms), 1);
  EXPECT_DOUBLE_EQ(paused(2000ms, 3000ms), 0.5);
  EXPECT_DOUBLE_EQ(paused(0ms, 600ms), 0);
  EXPECT_DOUBLE_EQ(paused(2500ms, 3000ms), 0);
  watch.look(kStart + 5900ms);  // for 2900 ms
  EXPECT_DOUBLE_EQ(paused(0ms, 60'000ms), 1.89 + 3);
}

TEST(Watchdog, EndsTheJobWhenACallDoesNotReturn) {
  std::promise<std::string> said;
  std::future<std::string> sentence = said.get_future();
  Watchdog watchdog(Seconds{0.01}, [&](const std::string& why) { said.set_value(why); });
  watchdog.watch("a call that returns");
  watchdog.rest();
  watchdog.watch("a call");
  ASSERT_EQ(sentence.wait_for(100s), std::future_status::ready);
  EXPECT_THAT(sentence.get(), testing::StartsWith("a call did not finish within 10.0 ms; "));
}

TEST(Watchdog, EndsWithItsProcess) {
  Watchdog watchdog(Seconds{1e6}, [](const std::string&) { FAIL() << "nothing hangs"; });
  watchdog.watch("a call");
  EXPECT_EQ(watchdog.paused_between({}, {}), Seconds{0});
}

}  // namespace
}  // namespace polyring
