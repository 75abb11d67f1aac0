// Reads what ibnetdiscover prints: an InfiniBand network, node by node, with the cable of each port.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "topology/inventory/fabric_map.hpp"

namespace polyring {

/// Whether a node of ibnetdiscover's begins in the text, whatever stands around it.
bool is_ibnetdiscover(std::string_view text);

/// The switches, adapters and links of the text, levels assigned, with a remark on each kind of damage that
/// can be lived with: ports whose cable the other end does not know of or knows otherwise, cables to nodes
/// that the text does not describe, unknown rates. Also text with chassis (-g) or full information (-f) is
/// read. Throws a usage Error for other text, with the line's number: a line that is none of ibnetdiscover's,
/// a node or a port that is described twice, more nodes than a subnet can have. `origin` names the text in
/// errors.
///
/// The format: the manual page of ibnetdiscover, "topology file format".
FabricMap parse_ibnetdiscover(std::string_view text, std::string_view origin);

/// The network of one file, or those of several, one for each plane.
FabricMap read_fabric(std::span<const std::string> files);

}  // namespace polyring
