// Reads the topology XML of NCCL and RCCL: what they write to NCCL_TOPO_DUMP_FILE and load from
// NCCL_TOPO_FILE.
#pragma once

#include <string_view>

#include "topology/cluster.hpp"

namespace polyring {

/// The hosts of such a file: one, or one for each `host_hash` of its CPUs. What the elements mean is in
/// NCCL's src/graph/xml.cc and topo.cc, and in RCCL's of the same names.
///
/// - A `<cpu>` is a NUMA node; each becomes a package, for the file does not say which share a socket.
/// - A `<pci>` with others below it is a PCIe switch. Without a `<gpu>` or `<nic>` in it, as in the files
/// that clouds
///   ship, its class says what it is: 0x03…, or AMD's 0x12…, is a GPU, 0x02… a NIC of unknown ports. NVLinks
///   that are not in the file are not invented.
/// - GPUs are in the order of `dev`, else of their bus addresses; so are NICs.
/// - NCCL lists only ports that are up. Their `guid` is that of the adapter, in the byte order of the host.
/// - Links count in the file; their bandwidths are those of gpu_links.hpp. What a file leaves open stays
/// unknown, where
///   NCCL itself would take PCIe gen 3 x16 or 10 Gb/s.
/// - A way through a `<cpu>` is PHB, as NCCL calls it: the file does not tell host bridges apart.
///
/// Throws a usage Error, which names `origin`, for other files, other versions than 1 (NCCL) and 2 (RCCL),
/// values that make no sense, and more devices than a host can have.
Cluster parse_nccl_xml(std::string_view xml, std::string_view origin);

}  // namespace polyring
