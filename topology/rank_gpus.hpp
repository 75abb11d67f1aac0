// Which GPUs of a host its ranks have.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "topology/machine.hpp"

namespace polyring {

/// The index of the GPU with this bus address, in upper or lower case; nothing: there is none.
std::optional<int> gpu_at(const Machine& machine, std::string_view pci);

/// The machine with these of its GPUs alone, in this order, and the links that remain. None comes twice.
Machine with_gpus(const Machine& machine, std::span<const int> gpus);

}  // namespace polyring
