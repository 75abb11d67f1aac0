// The speed of a NIC's port, as NCCL's XML and sysfs write it.
#pragma once

#include <cstdint>

#include "topology/machine.hpp"

namespace polyring::nccl_xml {

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
