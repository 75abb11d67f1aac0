#include "topology/probe/trial.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>

#include "topology/error.hpp"

namespace polyring::probe {
namespace {

constexpr int kEndedByItself = 42;  // not a status that a crash handler exits with

[[noreturn]] void run_in_child(const std::function<void()>& action, unsigned seconds) {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  for (const int signal_number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGALRM})
    std::signal(signal_number, SIG_DFL);
  const int nowhere = open("/dev/null", O_WRONLY);
  dup2(nowhere, STDOUT_FILENO);
  dup2(nowhere, STDERR_FILENO);
  alarm(seconds);
  try {
    action();
  } catch (const std::exception&) {
    // An answer as good as any: the caller will get it too.
  }
  _exit(kEndedByItself);
}

}  // namespace

bool survives(const std::function<void()>& action, unsigned seconds) {
  const pid_t child = fork();
  if (child < 0) throw Error(ExitCode::internal, fmt::format("fork failed: {}", std::strerror(errno)));
  if (child == 0) run_in_child(action, seconds);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR)
      throw Error(ExitCode::internal, fmt::format("waitpid failed: {}", std::strerror(errno)));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == kEndedByItself;
}

}  // namespace polyring::probe
