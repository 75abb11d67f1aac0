// Processes that keep their data in host memory, in the places of GPUs.
#pragma once

#include <string>

#include "topology/machine.hpp"

namespace polyring {

/// The host without its GPUs, their NVSwitches, and the links to both.
Machine without_gpus(Machine machine);

/// "process3"
std::string process_name(int index_on_host);

/// The host as `processes` processes see it: without its GPUs, and each process joined to a package by a link
/// of kind memory, over which what it sends is read and what it receives is written. They fill the packages
/// evenly, one package after another. Of these links nothing is known. Throws a usage Error for fewer than 1
/// process.
Machine with_processes(Machine machine, int processes);

/// Whether with_processes() made it: its ranks share its memory.
bool has_processes(const Machine& machine);

}  // namespace polyring
