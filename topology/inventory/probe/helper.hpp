// A child process for a library that may crash or hang, which lives on and answers again and again.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>

#include "base/units.hpp"
#include "topology/inventory/probe/trial.hpp"

namespace polyring::probe {

/// What the parent process wants of a helper.
class HelperRequests {
 public:
  enum class Next { asked, nothing, over };

  explicit HelperRequests(int socket) : socket_(socket) {}
  /// Waits for a request, no longer than that. over: the parent is gone.
  Next wait(std::chrono::milliseconds longest);
  /// What the last request asked for is in shared memory now.
  void answered();

 private:
  int socket_;
};

/// Its results go through a Shared. To be started before MPI is initialised, as every fork().
class Helper {
 public:
  /// `serve` runs in the child, which ends with it. Throws an Error (internal) when no process can be
  /// started.
  explicit Helper(const std::function<void(HelperRequests&)>& serve);
  Helper(const Helper&) = delete;
  Helper& operator=(const Helper&) = delete;
  /// Kills it. One that sleeps inside a driver is not waited for.
  ~Helper();

  /// by_itself: it has answered. After anything else there is no helper any more, and each call says the
  /// same.
  Ending ask(Seconds limit);

 private:
  pid_t child_ = 0;
  int socket_ = -1;
  Ending ending_ = Ending::by_itself;
};

}  // namespace polyring::probe
