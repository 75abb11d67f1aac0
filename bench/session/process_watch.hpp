// Tells rank 0 when another process of the job has ended before its time, and the others when rank 0's has,
// by connections that the system closes when a process dies. Launchers do not always: mpirun
// --enable-recovery and srun --kill-on-bad-exit=0 let the others live, which would then wait until their time
// limit.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "collectives/runtime/net/socket.hpp"
#include "collectives/runtime/world.hpp"

namespace polyring {

class ProcessWatch {
 public:
  /// Collective. `ended` is called from a thread of its own, at most once, with the first rank of a process
  /// that has ended: on rank 0 any other one's, on the others rank 0. Where rank 0 cannot be reached by TCP
  /// from all other processes, nobody is watched.
  ProcessWatch(const World& world, std::function<void(Rank)> ended);
  /// Says farewell. Not collective: the others may end later.
  ~ProcessWatch();
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  /// Whether all processes are watched; the same on all ranks.
  bool works() const { return works_; }

 private:
  struct Watched {
    Socket socket;
    Rank rank = 0;
  };

  bool connect(const World& world);
  bool accept(const World& world);
  void watch();

  std::function<void(Rank)> ended_;
  std::unique_ptr<Listener> listener_;  // on rank 0, until all have come
  std::vector<Watched> watched_;
  std::thread thread_;
  std::atomic<bool> over_ = false;
  bool works_ = false;
};

}  // namespace polyring
