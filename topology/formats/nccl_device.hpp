// What NCCL's XML tells about a PCI device: as the model of a GPU or NIC, and back, for the file has no
// product names; and the speed of a NIC's port.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "topology/machine.hpp"

namespace polyring::nccl_xml {

struct Identity {
  unsigned vendor = 0;  // of PCI; 0 when unknown
  unsigned device = 0;
  int compute_capability = 0;  // 80 for 8.0; 0 when unknown, or AMD's
  std::string architecture;    // AMD's: "gfx942", or "908" as older files have it
};

/// `device 10de:20b5, sm 80`, as far as it is known; empty when nothing is.
std::string model_of(const Identity& identity);

/// Of a text by model_of(); of a product's name the compute capability.
Identity identity_of(std::string_view model);

/// To the twelve digits that our JSON keeps, so that what is derived of a machine comes out the same when it
/// is read again.
Bandwidth as_kept(Bandwidth bandwidth);

/// What a port of this speed carries. Both NCCL and sysfs give InfiniBand's speeds per direction without the
/// coding; 0 (unknown) for numbers of 0 and below, which some plugins give. NCCL multiplies a lane's speed by
/// the lanes (ncclIbSpeed() in src/transport/net_ib), and so leaves open what they are: see is_ambiguous().
/// Of several possible ones the least counts.
Bandwidth port_bandwidth(std::int64_t megabits_per_second, NicKind kind);

/// Whether a port of this speed may carry far more than port_bandwidth() says: 4 lanes of FDR10 have the same
/// speed as those of QDR, and so has Ethernet of 40 Gb/s.
bool is_ambiguous(std::int64_t megabits_per_second, NicKind kind);

}  // namespace polyring::nccl_xml
