#include "topology/socket_buses.hpp"

#include <algorithm>
#include <array>

namespace polyring {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

std::optional<SocketBus> published_socket_bus(std::string_view machine_model) {
  if (contains(machine_model, "8335-GTB")) {
    return SocketBus{gigabytes_per_second(38.4),
                     {"between the sockets 3 lanes x 2 bytes x 6.4 GHz = 38.4 GB/s",
                      "IBM Power System S822 technical overview, REDP-5102; assumed to hold for the S822LC"}};
  }
  // Without and with water cooling, with four and with six GPUs.
  constexpr std::array kAc922{"8335-GTC", "8335-GTG", "8335-GTH", "8335-GTW", "8335-GTX"};
  if (std::ranges::any_of(kAc922, [&](const char* type) { return contains(machine_model, type); })) {
    return SocketBus{gigabytes_per_second(64),
                     {"X-bus between the sockets: 4 bytes x 16 GT/s = 64 GB/s",
                      "WikiChip, Summit (OLCF-4); NCCL's tuning model counts on 32 GB/s of it"}};
  }
  return std::nullopt;
}

void add_published_socket_bus(Machine& machine) {
  const auto bus = published_socket_bus(machine.model);
  if (!bus || machine.packages.size() != 2) return;
  const auto link = std::ranges::find(machine.links, LinkKind::socket_bus, &Link::kind);
  if (link == machine.links.end() || link->bandwidth.known()) return;
  link->bandwidth = bus->bandwidth;
  machine.citations.push_back({bus->citation.fact + "; published, not measured", bus->citation.source});
}

}  // namespace polyring
