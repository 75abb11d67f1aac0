// Asking many things that may crash: the files of a thousand hosts, each of which hwloc 2.9 may not survive.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace polyring::probe {

/// Calls answer(i) for each i below `count` in a few child processes, and returns what each call did: nothing
/// for one that crashed, threw, or took longer than `seconds`; the others go on. Throws an Error (internal)
/// when no process can be started.
std::vector<std::optional<std::string>> trial_answers(std::size_t count,
                                                      const std::function<std::string(std::size_t)>& answer,
                                                      unsigned seconds);

}  // namespace polyring::probe
