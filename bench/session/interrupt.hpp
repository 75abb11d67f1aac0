// What a measuring run does when somebody presses ^C or ends it.
#pragma once

#include <functional>
#include <thread>

#include "base/units.hpp"

namespace polyring {

/// While one lives, the first SIGINT or SIGTERM has `act` run, in a thread of its own, and then ends the
/// process with exit_code(signal), without another word: nothing is finalised, which could hang. A second
/// signal ends the process at once; one that comes with the first does not, since a terminal and a launcher
/// may both send it. A signal that is ignored stays so. One at a time.
class InterruptHandler {
 public:
  explicit InterruptHandler(std::function<void(int signal)> act);
  ~InterruptHandler();  // signals have their usual effect again
  InterruptHandler(const InterruptHandler&) = delete;
  InterruptHandler& operator=(const InterruptHandler&) = delete;

  static int exit_code(int signal) { return 128 + signal; }  // as shells do: 130, 143

 private:
  void run(const std::function<void(int)>& act) const;

  int wake_[2] = {-1, -1};  // a pipe: the handler writes, the thread reads
  std::thread thread_;
};

}  // namespace polyring
