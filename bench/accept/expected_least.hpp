// What an allreduce must reach on these hosts where nobody gave a threshold.
#pragma once

#include "bench/accept/check.hpp"

namespace polyring {

/// The low end of expected_interval(), as busbw in GB/s. Where nothing is published of so small a payload,
/// that of a large one less the latencies of a ring's steps. Nothing where that is not known either.
std::optional<Threshold> expected_least(const Cluster& cluster, const std::string& algorithm, Bytes size);

}  // namespace polyring
