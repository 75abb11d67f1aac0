// The kernels' bodies, by the names that the kernels are registered with.
#pragma once

#include <string_view>

#include "collectives/cuda/kernel_table.hpp"

namespace polyring::software_gpu {

/// Of the plug-in's kernels and of the conformance suite's. Null where there is none.
const HostKernel* find_body(std::string_view name);

}  // namespace polyring::software_gpu
