// Which of a host's addresses other hosts reach it at, for what opens TCP connections of its own.
#pragma once

#include <string>
#include <vector>

namespace polyring {

struct NetworkInterface {
  std::string name;
  std::string address;  // IPv4, as text
  bool loopback = false;
};

/// The interfaces of this host that are running and have an IPv4 address, in the system's order; one that has
/// several addresses comes several times. Throws Error(ExitCode::not_available) when the system does not
/// tell.
std::vector<NetworkInterface> network_interfaces();

/// The name of the interface of the default route, or nothing.
std::string default_interface();

/// This host's address: that of the interface `wanted` if it is not empty; else, when `several_hosts`, of the
/// interface `preferred` or, without one, of the first that is not the loopback; else the loopback's.
/// Throws Error(ExitCode::not_available) that lists the interfaces when there is none.
std::string choose_address(const std::vector<NetworkInterface>& interfaces, const std::string& wanted,
                           const std::string& preferred, bool several_hosts);

}  // namespace polyring
