// Costs: what a transfer takes beside the links that it crosses.
#pragma once

#include "base/units.hpp"

namespace polyring {

/// Of one kind of transport. All zero: messages cost nothing but their way, and reductions nothing.
struct Costs {
  Seconds message_in_host;        // added to the latency of each message
  Seconds message_between_hosts;  //
  Bandwidth reduction;            // bytes received per second that a rank can combine with its own; 0: any
};

}  // namespace polyring
