// Events that processes share.
#pragma once

#include "tests/software_gpu/event.hpp"

namespace polyring::software_gpu {

/// Puts the event's generations into memory that another process can open.
void share_event(Event& event);
/// No other process can open it from now on. Those that have opened it keep it.
void unshare_event(Event& event);

}  // namespace polyring::software_gpu
