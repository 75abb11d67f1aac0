#include "base/children.hpp"

namespace polyring {

WaitableChildren::WaitableChildren() {
  ::sigaction(SIGCHLD, nullptr, &before_);
  const bool forgotten = before_.sa_handler == SIG_IGN || (before_.sa_flags & SA_NOCLDWAIT) != 0;
  if (!forgotten) return;
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(SIGCHLD, &usual, nullptr);
}

WaitableChildren::~WaitableChildren() { ::sigaction(SIGCHLD, &before_, nullptr); }

}  // namespace polyring
