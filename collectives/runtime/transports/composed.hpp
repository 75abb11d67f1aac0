// Two transports as one: ranks that the near one reaches go through it, all others through the far one.
#pragma once

#include <memory>

#include "collectives/runtime/transport.hpp"

namespace polyring {

/// Both must be of the same rank and size. Payloads are allocated by the near one, and must be of use to the
/// far one, too.
std::unique_ptr<Transport> compose(std::unique_ptr<Transport> near, std::unique_ptr<Transport> far,
                                   WaitRules rules);

}  // namespace polyring
