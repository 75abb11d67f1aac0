// A cluster whose hosts are known one by one, as a person can read it.
#pragma once

#include <string>
#include <vector>

#include "topology/inventory/inventory.hpp"

namespace polyring {

/// As probe_text() of the cluster; where there are several hosts, the commonest kind of host (and each that
/// is another kind) once, then which hosts are equal, how the others differ, which could not be probed, what
/// was asked for, and the notes.
std::string inventory_text(const Inventory& inventory);

/// The kinds of hosts that are worth a picture, one group each: the commonest, and each that is another kind.
/// Those that differ little are told in words.
Cluster pictured(const Inventory& inventory);

/// How the hosts that are not pictured differ, a sentence each.
std::vector<std::string> not_pictured(const Inventory& inventory);
/// The same as lines under a heading, for below the picture; empty where all are pictured.
std::string not_pictured_text(const Inventory& inventory);
/// What was asked for, in the same way.
std::string asked_text(const Inventory& inventory);

}  // namespace polyring
