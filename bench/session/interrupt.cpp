#include "bench/session/interrupt.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "base/error.hpp"

namespace polyring {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM};
constexpr std::int64_t kTogetherNs = 200'000'000;
constexpr unsigned char kStop = 0;  // in place of a signal's number

// What the handler needs.
std::atomic<int> descriptor{-1};
std::atomic<std::int64_t> first_ns{0};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void send(unsigned char byte) {
  while (::write(descriptor.load(), &byte, 1) < 0 && errno == EINTR) {
  }
}

void on_signal(int signal) {
  const int before = errno;
  std::int64_t none = 0;
  const std::int64_t now = now_ns();
  if (first_ns.compare_exchange_strong(none, now)) {
    send(static_cast<unsigned char>(signal));
  } else if (now - none > kTogetherNs) {
    ::_exit(InterruptHandler::exit_code(signal));
  }
  errno = before;
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void set_all(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  for (const int signal : kSignals) {
    if (!is_ignored(signal)) sigaction(signal, &action, nullptr);
  }
}

}  // namespace

InterruptHandler::InterruptHandler(std::function<void(int)> act) {
  if (::pipe2(wake_, O_CLOEXEC) != 0)
    throw Error(ExitCode::internal, fmt::format("there is no pipe: {}", std::strerror(errno)));
  descriptor = wake_[1];
  first_ns = 0;
  thread_ = std::thread([this, act = std::move(act)] { run(act); });
  set_all(on_signal);
}

InterruptHandler::~InterruptHandler() {
  set_all(SIG_DFL);
  send(kStop);
  thread_.join();
  for (const int end : wake_) ::close(end);
}

void InterruptHandler::run(const std::function<void(int)>& act) const {
  unsigned char signal = kStop;
  while (::read(wake_[0], &signal, 1) < 0 && errno == EINTR) {
  }
  if (signal == kStop) return;
  act(signal);
  ::_exit(InterruptHandler::exit_code(signal));
}

}  // namespace polyring
