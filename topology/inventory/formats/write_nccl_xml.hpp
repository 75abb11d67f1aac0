// Writes a host as the topology XML that NCCL loads from NCCL_TOPO_FILE.
#pragma once

#include <string>

#include "topology/cluster.hpp"

namespace polyring {

/// What parse_nccl_xml() reads back as the same GPUs, ports that are up, links and paths. NCCL's parser is
/// simpler than XML (its src/graph/xml.cc): no declaration, one blank between attributes, values of less than
/// 255 characters.
///
/// - Version 1; version 2, which is RCCL's, where GPUs are AMD's.
/// - What is unknown is left out, and NCCL then asks the driver.
/// - A bandwidth that no PCIe generation, NVLink generation or rate of a network has is in an attribute of
/// ours too,
///   which NCCL skips.
/// - The format has no place for buses between sockets, latencies, memory, cores, ports that are down, host
/// bridges
///   (read back, a NODE is a PHB), and a second socket of a NIC, which a comment names.
/// - Of several hosts that are equal it is the first's, and a comment says so: buses may be numbered
/// otherwise.
/// - Devices without bus addresses, as presets have, get made-up ones, and a comment that says so.
///
/// - NCCL knows CPUs by their NUMA nodes: of several packages of one node, or of none that is known, all but
///   the first get made-up numbers, and a comment.
///
/// Throws a usage Error for a cluster of several kinds of host, since NCCL reads a file of one host, and for
/// hosts without GPUs and NICs.
std::string write_nccl_xml(const Cluster& cluster);

}  // namespace polyring
