// A cluster as a graph for Graphviz.
#pragma once

#include <string>

#include "topology/cluster.hpp"

namespace polyring {

/// The cluster in the DOT language, for example for `dot -Tsvg`: each kind of host once, as a cluster that
/// holds one for each package with what hangs under it. What is equally near to several packages stands
/// beside them. An edge is as wide as the square root of its bandwidth, an edge of unknown bandwidth is
/// dotted, and a port that is down is red and dashed. The same cluster gives the same text.
std::string probe_dot(const Cluster& cluster);

}  // namespace polyring
