// How many devices a host may have that a file or a recorded tree describes.
#pragma once

#include <string_view>

#include "topology/machine.hpp"

namespace polyring::probe {

/// Throws a usage Error, which ends with the remedy, where the machine that `origin` describes has more
/// devices of one kind than any host has: 256 GPUs, 1,024 of the others, as in our JSON. Paths between more
/// take seconds.
void check_counts(const Machine& machine, std::string_view origin, std::string_view remedy);

}  // namespace polyring::probe
