// What-ifs: a machine with other NICs, fewer GPUs, or without one device or link; a fabric that is
// oversubscribed. Each takes a machine that is known and returns the other one, with a citation that says so.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "topology/cluster.hpp"
#include "topology/presets/products.hpp"

namespace polyring {

/// The source of those citations begins so; the last of a machine's or a fabric's says what has changed.
inline constexpr std::string_view kAsAsked = "as asked";

/// The machine with its first `gpus` GPUs alone. Throws a usage Error when it does not have so many.
Machine with_gpus_per_host(const Machine& machine, int gpus);

/// The machine with `count` NICs in the place of those by which routes leave it (usable_nics(), those that
/// are up), of kind `part` if there is one. Fewer are spread as rail_nics() does; further ones hang beside
/// those that are there, each by a link like theirs, or on the packages in turns where there is none. Other
/// NICs go down. Throws a usage Error where nothing tells what the NICs carry, or where a new one could hang.
Machine with_nics(const Machine& machine, int count, const std::optional<presets::NicPart>& part);

/// What a NIC of this machine is, for more of them: of the first usable one; Ethernet where it has none.
NicProtocol nic_protocol_of(const Machine& machine);

/// The sum over the usable NICs, per direction. 0 where one of them is unknown.
Bandwidth network_bandwidth(const Machine& machine);
/// "4 of 48.5 GB/s", "2 of 12.1 GB/s and 1 of 1.25 GB/s", "none".
std::string nics_text(const Machine& machine);

/// A ratio as people write it: "2" or "2:1", both 2; "3:2" is 1.5. with_oversubscription() checks its
/// range. Throws a usage Error that names `what` for other text, and unless each number is finite and above
/// 0.
double parse_oversubscription(std::string_view text, std::string_view what);

/// The cluster with leaf switches whose hosts' NICs carry `ratio` times what the uplinks do: 2 for 2:1.
/// Throws a usage Error below 1, and where the number of hosts under a leaf or what a NIC carries is unknown.
Cluster with_oversubscription(Cluster cluster, double ratio);

/// The cluster in which each leaf has lost one uplink. An uplink is taken to carry as much as one NIC. All
/// leaves lose one, since the slowest leaf sets the pace. Throws a usage Error where it has no leaves, or
/// only one uplink.
Cluster without_leaf_uplink(Cluster cluster);

/// The machine without a NIC ("mlx5_3": it goes down), a GPU ("gpu3"), or one of the NVLinks or xGMI links
/// between two devices ("gpu0-gpu1", "gpu0-nvswitch0"). Throws a usage Error for other names, with the
/// nearest, for a NIC that is down, and where the rest hangs no longer together.
Machine without(const Machine& machine, std::string_view what);
}  // namespace polyring
