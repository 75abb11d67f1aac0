// Waiting for child processes, whatever this process has inherited from who started it.
#pragma once

#include <csignal>

namespace polyring {

/// While one lives, waitpid(2) tells how children end. Where SIGCHLD is ignored, as under `trap '' CHLD` and
/// some containers' first processes, the kernel forgets that, and waitpid(2) fails with ECHILD.
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
