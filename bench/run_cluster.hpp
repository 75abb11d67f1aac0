// The hosts on which a result was measured.
#pragma once

#include <string>

#include "reports/result.hpp"
#include "topology/cluster.hpp"

namespace polyring {

/// As the result describes them, with the processes that it placed on each, whose data are in host memory:
/// GPUs are left out. `file` names it in errors. Throws a usage Error when it does not say what the machine
/// was, when ranks of a host are not numbered one after another, and as parse_probe_json() does.
Cluster cluster_of_run(const ResultFile& result, const std::string& file);

}  // namespace polyring
