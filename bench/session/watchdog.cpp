#include "bench/session/watchdog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace polyring {

void Watch::begin(const WatchedCall& call, Time now) {
  call_ = call;
  watching_ = true;
  const std::chrono::duration<double> allowed{1.5 * call.limit.value + 1};
  over_at_ = now + std::chrono::duration_cast<Time::duration>(allowed);
}

std::optional<std::string> Watch::look(Time now) {
  constexpr std::chrono::milliseconds kUsualDelay{50};
  if (now - next_look_ > kUsualDelay) pauses_.push_back({next_look_, now});
  next_look_ = now + kPeriod;
  if (!watching_ || now < over_at_) return std::nullopt;
  watching_ = false;
  return fmt::format("{} did not finish within {}; {}, or raise --timeout", call_.what, to_text(call_.limit),
                     call_.advice);
}

Seconds Watch::paused_between(Time begin, Time end) const {
  Time::duration paused{};
  for (auto pause = pauses_.rbegin(); pause != pauses_.rend() && pause->end > begin; ++pause) {
    paused += std::max(Time::duration{}, std::min(pause->end, end) - std::max(pause->begin, begin));
  }
  return {std::chrono::duration<double>(paused).count()};
}

Watchdog::Watchdog(Seconds timeout, std::function<void(const std::string&)> end)
    : timeout_(timeout), end_(std::move(end)), thread_([this] { run(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::watch(const WatchedCall& call) {
  const std::lock_guard lock(mutex_);
  watch_.begin(call, Clock::now());
}

void Watchdog::rest() {
  const std::lock_guard lock(mutex_);
  watch_.end();
}

Seconds Watchdog::paused_between(Clock::time_point begin, Clock::time_point end) const {
  const std::lock_guard lock(mutex_);
  return watch_.paused_between(begin, end);
}

void Watchdog::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    // Looking up now and then costs the measured threads less than a wake-up for every watch().
    changed_.wait_for(lock, Watch::kPeriod);
    if (stop_) return;
    // The lock is kept: a call that returns after all must not go on while the job is being ended.
    if (const auto sentence = watch_.look(Clock::now())) end_(*sentence);
  }
}

}  // namespace polyring
