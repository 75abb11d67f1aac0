// The emulated cluster of scripts/emulate, as it describes itself to the ranks that it starts.
//
// POLYRING_SOURCE                     emulated; measured, or not set, everywhere else
// POLYRING_EMULATED                   in words: "4 hosts x 4 ranks at 200mbit"
// POLYRING_EMULATED_RATE              of each host's link
// POLYRING_EMULATED_HOSTS_PER_RACK    not set where there is one switch
// POLYRING_EMULATED_UPLINK_RATE       of each rack's uplink
#pragma once

#include <optional>
#include <string>

#include "reports/result.hpp"
#include "topology/cluster.hpp"

namespace polyring {

/// Where times come from that this process takes: measured or emulated. Throws a usage Error when
/// POLYRING_SOURCE is neither.
Source source_here();

/// A sentence about the emulated cluster, for the notes of a result; nothing when the times are measured.
std::optional<std::string> emulation_note();

/// Gives the hosts the link that is emulated, and no other, and the fabric its uplinks; does nothing when the
/// times are measured. Throws a usage Error for a variable that cannot be read.
void describe_emulated_network(Cluster& cluster);

}  // namespace polyring
