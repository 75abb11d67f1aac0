// What machines that are described anew and those with a base share; for described*.cpp alone.
#pragma once

#include <string>

#include "base/error.hpp"
#include "topology/described.hpp"
#include "topology/presets/layouts.hpp"

namespace polyring::described {

/// "as stated in site.toml:3"
inline std::string as_stated(const std::string& where) { return "as stated in " + where; }

/// Refuses a value where it was stated.
template <typename... Args>
[[noreturn]] void wrong(const std::string& where, fmt::format_string<Args...> sentence, Args&&... args) {
  usage_error("{}: {}", where, fmt::format(sentence, std::forward<Args>(args)...));
}

/// Calls `make`, whose usage Errors get this place in front.
template <typename Make>
auto at(const std::string& where, Make make) {
  try {
    return make();
  } catch (const Error& error) {
    throw Error(error.code(), where + ": " + error.what());
  }
}

/// Refuses a number outside of least..most, which is `what`.
void check_range(const std::optional<Stated<int>>& number, std::string_view what, int least, int most);
/// All numbers of the description by themselves.
void check_ranges(const MachineDescription& description);

/// The kind of the NICs and their part; the description has a rate. `usual`: the kind where neither it nor
/// the rate says one; nothing: it must.
presets::NicPart nic_part(const MachineDescription& description, std::optional<NicProtocol> usual);

/// What the description says of sockets in the place of `kind`'s numbers.
void overlay(const MachineDescription::Sockets& stated, presets::SocketKind& kind);
/// Cites what was stated of the sockets.
void cite_sockets(Machine& machine, const MachineDescription::Sockets& stated);

/// Leaves, oversubscription and latencies that were stated.
void state_fabric(Cluster& cluster, const MachineDescription::Network& stated);

/// The machine that differs from a preset.
Cluster cluster_with_base(const MachineDescription& description);

}  // namespace polyring::described
