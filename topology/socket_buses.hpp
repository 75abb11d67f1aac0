// What the bus between the sockets of a machine carries, where that is published: no probe can read it.
#pragma once

#include <optional>
#include <string_view>

#include "topology/machine.hpp"

namespace polyring {

/// A bus between two sockets, per direction, and where the number is from.
struct SocketBus {
  Bandwidth bandwidth;
  Citation citation;
};

/// By the machine's model as firmware names it: IBM's S822LC for HPC ("8335-GTB") and AC922 ("8335-GTG" and
/// the like). Nothing for others. With x86 neither the model nor the processors tell: how many links of UPI
/// or xGMI join two sockets is the board's choice, and how fast they are the processor's and the BIOS'.
std::optional<SocketBus> published_socket_bus(std::string_view machine_model);

/// Gives the bus between the two packages of such a machine its bandwidth where that is unknown, and cites
/// it.
void add_published_socket_bus(Machine& machine);

}  // namespace polyring
