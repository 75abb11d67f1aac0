#include "topology/probe/trial.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <optional>
#include <thread>

namespace polyring::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kEndedByItself = 42;  // not a status that a crash handler exits with

[[noreturn]] void run_in_child(const std::function<void()>& action) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (const int signal_number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL})
    std::signal(signal_number, SIG_DFL);
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  try {
    action();
  } catch (const std::exception&) {
    // An answer as good as any: the caller will get it too.
  }
  _exit(kEndedByItself);
}

/// The child's status, or nothing when it has not ended by then.
std::optional<int> wait_until(pid_t child, Clock::time_point deadline) {
  std::chrono::microseconds pause{50};
  constexpr std::chrono::microseconds kLongest{1000};
  while (true) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child) return status;
    if (ended < 0 && errno != EINTR)
      throw Error(ExitCode::internal, fmt::format("waitpid failed: {}", std::strerror(errno)));
    if (Clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongest);
  }
}

}  // namespace

Ending try_out(const std::function<void()>& action, Seconds limit) {
  constexpr std::chrono::milliseconds kToDie{200};
  const auto deadline =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limit.value));
  const pid_t child = fork();
  if (child < 0) throw Error(ExitCode::internal, fmt::format("fork failed: {}", std::strerror(errno)));
  if (child == 0) run_in_child(action);
  const std::optional<int> status = wait_until(child, deadline);
  if (!status) {
    kill(child, SIGKILL);
    wait_until(child, Clock::now() + kToDie);
    return Ending::out_of_time;
  }
  return WIFEXITED(*status) && WEXITSTATUS(*status) == kEndedByItself ? Ending::by_itself : Ending::crashed;
}

bool survives(const std::function<void()>& action, unsigned seconds) {
  return try_out(action, {static_cast<double>(seconds)}) == Ending::by_itself;
}

}  // namespace polyring::probe
