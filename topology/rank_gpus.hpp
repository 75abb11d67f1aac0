// Machines of which ranks have only some GPUs.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "topology/machine.hpp"

namespace polyring {

/// The index of the GPU with this bus address, whether its letters are large or small; nothing: there is
/// none.
std::optional<int> gpu_at(const Machine& machine, std::string_view pci);

/// The machine with these of its GPUs alone, in this order, and the links that remain. None comes twice.
Machine with_gpus(const Machine& machine, std::span<const int> gpus);

}  // namespace polyring
