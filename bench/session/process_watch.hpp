// Tells rank 0 when another process of the job has ended before its time, and the others when rank 0's has,
// by connections that the system closes when a process dies. Launchers do not always: mpirun
// --enable-recovery and srun --kill-on-bad-exit=0 let the others live, which would then wait until their time
// limit.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "collectives/runtime/net/socket.hpp"
#include "collectives/runtime/world.hpp"

namespace polyring {

/// How a process has come to its end.
struct ProcessEnd {
  Rank rank = 0;  // the first of the process
  /// The exit code of one that said that it ends the job; nothing of one that died.
  std::optional<ExitCode> gave_up{};
};

class ProcessWatch {
 public:
  using Ended = std::function<void(const ProcessEnd&)>;

  /// Collective. `ended` is called from a thread of its own, at most once: on rank 0 for any other process,
  /// on the others for that of rank 0. Where rank 0 cannot be reached by TCP from all other processes, nobody
  /// is watched.
  ProcessWatch(const World& world, Ended ended);
  /// Says farewell. Not collective: the others may end later.
  ~ProcessWatch();
  ProcessWatch(const ProcessWatch&) = delete;
  ProcessWatch& operator=(const ProcessWatch&) = delete;

  /// On a rank that ends the job by itself, so that nobody takes its process for one that died. In any
  /// thread. Rank 0 has told of it after kUntilTold; of rank 0 the others hear when its process has ended.
  void give_up(ExitCode code) const;
  static constexpr std::chrono::milliseconds kUntilTold{200};

  /// Whether all processes are watched; the same on all ranks.
  bool works() const { return works_; }

 private:
  struct Watched {
    Socket socket;
    Rank rank = 0;
    std::optional<ExitCode> gave_up{};
  };

  bool connect(const World& world);
  bool accept(const World& world);
  void watch();
  struct Ends {
    std::optional<Rank> dead{};  // the one that died first
    std::chrono::steady_clock::time_point died{};
    std::optional<ProcessEnd> gave_up{};
  };
  void hear(Ends& ends);

  Ended ended_;
  std::unique_ptr<Listener> listener_;  // on rank 0, until all have come
  mutable std::mutex mutex_;            // held to change what follows, and to read it in another thread
  std::vector<Watched> watched_;
  std::thread thread_;
  std::atomic<bool> over_ = false;
  bool works_ = false;
};

}  // namespace polyring
