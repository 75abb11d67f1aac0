// What a NIC speaks: the kind of its port, and for Ethernet's what runs over it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "topology/machine.hpp"

namespace polyring {

/// RoCE and EFA run over Ethernet's links, and need no sockets.
enum class NicProtocol { infiniband, roce, ethernet, efa };

/// "infiniband", "roce", "ethernet" and "efa".
std::vector<std::string> nic_protocols();
std::string_view to_text(NicProtocol protocol);
/// As people write it: "InfiniBand", "RoCE".
std::string_view title_of(NicProtocol protocol);
/// What names of such NICs begin with: "mlx5_", "roce", "eth", "efa".
std::string_view device_prefix(NicProtocol protocol);
/// In any case. Throws a usage Error for other words.
NicProtocol parse_nic_protocol(std::string_view text);

/// Ethernet's port is RDMA's where its device is one of OpenFabrics', by its name.
NicProtocol protocol_of(const Nic& nic);

}  // namespace polyring
