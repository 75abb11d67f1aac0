// The emulated cluster of scripts/emulate, as it describes itself to the ranks that it starts.
//
// POLYRING_SOURCE                     emulated; measured, or not set, everywhere else
// POLYRING_EMULATED                   in words: "4 hosts x 4 ranks at 200mbit"
// POLYRING_EMULATED_RATE              of the host's link, of each one where it has several
// POLYRING_EMULATED_RAILS             how many links of a host MPI uses; not set where a host has one
// POLYRING_EMULATED_BURST             what its shaper lets pass at once
// POLYRING_EMULATED_HOSTS_PER_RACK    not set where there is one switch
// POLYRING_EMULATED_UPLINK_RATE       of each rack's uplink
// POLYRING_EMULATED_UPLINK_BURST      what its shaper lets pass at once
#pragma once

#include <optional>
#include <string>

#include "base/units.hpp"
#include "reports/result.hpp"
#include "topology/cluster.hpp"

namespace polyring {

/// Where times come from that this process takes: measured or emulated. Throws a usage Error when
/// POLYRING_SOURCE is neither.
Source source_here();

/// A sentence about the emulated cluster, for the notes of a result; nothing when the times are measured.
std::optional<std::string> emulation_note();

/// Gives the machine the links that are emulated here, and no others; nothing when the times are measured.
/// Throws a usage Error for a variable that cannot be read.
void give_emulated_link(Machine& machine);
/// The same for the fabric with its uplinks.
void describe_emulated_fabric(Cluster& cluster);

/// By how much sooner than at its rate a payload may pass an emulated link: a shaper lets a burst pass at
/// once after a pause. So B bytes over a link of rate R take at least B / R less this; 0 when the times are
/// measured.
Seconds emulated_head_start();

}  // namespace polyring
