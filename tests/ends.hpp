// Whether a process that a test has nothing else to do with comes to its end.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace polyring {

/// Whether it runs: a process that has ended may stay a zombie, if whoever inherits it does not wait for it.
inline bool runs(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/stat");
  std::string number, name, state;
  return status >> number >> name >> state && state != "Z";
}

/// Waits until it has ended, for 20 s at most; false when it still runs then.
inline bool ends(pid_t process) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (runs(process) && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  return !runs(process);
}

}  // namespace polyring
