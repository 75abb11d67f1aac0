// Trying something out that may crash: hwloc 2.9 does on some damaged files.
#pragma once

#include <functional>

namespace polyring::probe {

/// Runs the action in a child process, and says whether that ended by itself within `seconds`, be it with an
/// exception. What the action prints and changes is lost. Throws an Error (internal) when no process can be
/// started.
bool survives(const std::function<void()>& action, unsigned seconds);

}  // namespace polyring::probe
