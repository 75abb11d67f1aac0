// Ports for ranks that find each other over TCP.
#pragma once

#include <random>

#include "base/error.hpp"
#include "collectives/runtime/net/socket.hpp"

namespace polyring::testing {

/// A port that nobody uses at this moment. It is below those that Linux gives to connections
/// (net.ipv4.ip_local_port_range), which other tests could get before it is used.
inline int free_port() {
  std::random_device random;
  std::uniform_int_distribution<int> ports(20'000, 31'999);
  for (;;) {
    try {
      return Listener("127.0.0.1", ports(random), 0).port();
    } catch (const Error&) {  // somebody has it
    }
  }
}

}  // namespace polyring::testing
