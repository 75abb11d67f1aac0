// Job: where something is measured: the ranks, how they reach each other, and their time limit.
#pragma once

#include <chrono>

#include "bench/session/watchdog.hpp"
#include "collectives/runtime/transport.hpp"
#include "collectives/runtime/world.hpp"

namespace polyring {

/// Refers to what others own.
struct Job {
  const World& world;
  Transport& transport;
  Watchdog& watchdog;
  using Now = std::chrono::steady_clock::time_point (*)();
  Now now = &std::chrono::steady_clock::now;  // of measure() and the tuner; tests have another one
};

}  // namespace polyring
