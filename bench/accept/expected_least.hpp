// What an allreduce must reach on these hosts where nobody gave a threshold.
#pragma once

#include "bench/accept/check.hpp"

namespace polyring {

/// The low end of what is expected, see Check.
std::optional<Threshold> expected_least(const Cluster& cluster, const std::string& algorithm, Bytes size);

}  // namespace polyring
