// Whether hosts reach each other over one network interface: connections of a moment, before one that fails
// would end a measurement, and the job with it.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace polyring {

/// Lets others connect to this process over the interface until stop_listening(), and returns where. Throws
/// Error(ExitCode::not_available) where it has no such interface.
std::string listen_on(const std::string& interface);
void stop_listening();

/// Connects to some of those that listen, which this process is one of: to the next, and to one half way
/// round. By the place in `all`, why it was not reached within a few seconds; empty: all were. Nothing where
/// this process does not listen at one of them.
std::map<std::size_t, std::string> unreached_of(const std::vector<std::string>& all);

}  // namespace polyring
