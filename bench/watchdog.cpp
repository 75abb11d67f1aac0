#include "bench/watchdog.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "topology/error.hpp"

namespace polyring {

Watchdog::Watchdog(std::string who, Seconds timeout, std::function<void(int)> end)
    : who_(std::move(who)), timeout_(timeout), end_(std::move(end)), thread_([this] { run(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::watch(const std::string& what) {
  const Seconds patience = 1.5 * timeout_ + Seconds{1};
  const std::lock_guard lock(mutex_);
  what_ = what;
  watching_ = true;
  limit_ = Clock::now() +
           std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(patience.value));
}

void Watchdog::rest() {
  const std::lock_guard lock(mutex_);
  watching_ = false;
}

Seconds Watchdog::paused_between(Clock::time_point begin, Clock::time_point end) {
  const std::lock_guard lock(mutex_);
  Clock::duration paused{};
  for (auto pause = pauses_.rbegin(); pause != pauses_.rend() && pause->end > begin; ++pause) {
    paused += std::max(Clock::duration{}, std::min(pause->end, end) - std::max(pause->begin, begin));
  }
  return {std::chrono::duration<double>(paused).count()};
}

void Watchdog::run() {
  constexpr std::chrono::milliseconds kPeriod{200};
  constexpr std::chrono::milliseconds kUsualDelay{50};
  std::unique_lock lock(mutex_);
  while (!stop_) {
    // Looking up now and then costs the measured threads less than a wake-up for every watch().
    const Clock::time_point due = Clock::now() + kPeriod;
    changed_.wait_for(lock, kPeriod);
    const Clock::time_point now = Clock::now();
    if (now - due > kUsualDelay) pauses_.push_back({due, now});
    if (stop_ || !watching_ || now < limit_) continue;
    fmt::print(
        stderr,
        "polyring: {}: {} did not finish within {}; see whether all ranks still run, or raise --timeout\n",
        who_, what_, to_text(timeout_));
    std::fflush(stderr);
    constexpr unsigned kSecondsToEnd = 5;
    alarm(kSecondsToEnd);
    end_(static_cast<int>(ExitCode::timeout));
  }
}

}  // namespace polyring
