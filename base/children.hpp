// Makes child processes waitable, whatever signal settings this process inherited from its parent.
#pragma once

#include <csignal>

namespace polyring {

/// While such an object lives, waitpid(2) reports how children end. A parent may have set SIGCHLD to be
/// ignored (`trap '' CHLD`, or the first process of some containers). Then the kernel discards the children's
/// status, and waitpid(2) fails with ECHILD.
class WaitableChildren {
 public:
  WaitableChildren();
  WaitableChildren(const WaitableChildren&) = delete;
  WaitableChildren& operator=(const WaitableChildren&) = delete;
  ~WaitableChildren();

 private:
  struct sigaction before_ {};
};

}  // namespace polyring
