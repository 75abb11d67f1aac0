#include "bench/cli/inherited.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <initializer_list>

namespace polyring {

void settle_inherited_state() {
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(standard, F_GETFD) >= 0) continue;
    // The lowest number that is free: this one, as those below it are open by now.
    const int opened = ::open("/dev/null", standard == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    if (opened != standard && opened >= 0) ::close(opened);
  }
  std::signal(SIGCHLD, SIG_DFL);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace polyring
