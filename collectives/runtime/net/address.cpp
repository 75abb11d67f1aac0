#include "collectives/runtime/net/address.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <memory>
#include <sstream>

#include "base/error.hpp"

namespace polyring {
namespace {

std::string listed(const std::vector<NetworkInterface>& interfaces) {
  std::string text;
  for (const NetworkInterface& interface : interfaces) {
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", interface.name, interface.address);
  }
  return text.empty() ? "none" : text;
}

}  // namespace

std::vector<NetworkInterface> network_interfaces() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) {
    throw Error(ExitCode::not_available, "the system does not tell this host's network interfaces");
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> all(first, &freeifaddrs);
  std::vector<NetworkInterface> interfaces;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    constexpr unsigned kRunning = IFF_UP | IFF_RUNNING;
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    if ((entry->ifa_flags & kRunning) != kRunning) continue;
    const void* address = &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr;
    std::array<char, INET_ADDRSTRLEN> text{};
    inet_ntop(AF_INET, address, text.data(), text.size());
    interfaces.push_back({entry->ifa_name, text.data(), (entry->ifa_flags & IFF_LOOPBACK) != 0});
  }
  return interfaces;
}

std::string default_interface() {
  std::ifstream routes("/proc/net/route");
  std::string line;
  while (std::getline(routes, line)) {
    std::istringstream words(line);
    std::string interface, destination;
    if (words >> interface >> destination && destination == "00000000") return interface;
  }
  return {};
}

std::string choose_address(const std::vector<NetworkInterface>& interfaces, const std::string& wanted,
                           const std::string& preferred, bool several_hosts) {
  const auto first = [&](auto&& fits) {
    const auto found = std::find_if(interfaces.begin(), interfaces.end(), fits);
    return found == interfaces.end() ? std::string() : found->address;
  };
  const auto named = [&](const std::string& name) {
    return first([&](const NetworkInterface& interface) { return interface.name == name; });
  };
  if (!wanted.empty()) {
    const std::string address = named(wanted);
    if (!address.empty()) return address;
    throw Error(ExitCode::not_available,
                fmt::format("no interface {} with an IPv4 address is running here; there are: {}", wanted,
                            listed(interfaces)));
  }
  if (several_hosts && !preferred.empty()) {
    const std::string address = named(preferred);
    if (!address.empty()) return address;
  }
  const std::string address =
      first([&](const NetworkInterface& interface) { return interface.loopback != several_hosts; });
  if (!address.empty()) return address;
  throw Error(ExitCode::not_available,
              fmt::format("no interface by which {} is running and has an IPv4 address; there are: {}",
                          several_hosts ? "other hosts reach this one" : "this host reaches itself",
                          listed(interfaces)));
}

}  // namespace polyring
