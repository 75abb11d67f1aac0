// What an allreduce must reach on these hosts where nobody gave a threshold.
#pragma once

#include "bench/accept/check.hpp"

namespace polyring {

/// Nobody has published figures of small payloads on most links. We chose to allow a fifth less than of large
/// payloads: AlayaNew's guide to nccl-tests calls a fifth less a fault (docs.alayanew.com, "NCCL-tests in
/// practice", 2026-05-06).
inline constexpr double kOfSmall = 0.8;
/// We chose to allow each step of a ring this much more time: twice the 26 us that a step takes beside its
/// bytes in the slowest published curve (8x A100, 256 MiB, in published_rates.json). None is over TCP.
inline constexpr Seconds kLatencyOfStep{50e-6};

/// What remains by both of a large payload's bus bandwidth, as a part, with 2(n − 1) steps of n ranks.
double part_of_small(Bytes size, int ranks, Bandwidth of_large);

/// The low end of expected_interval(), as busbw in GB/s. Where nothing is published of so small a payload,
/// the part_of_small() of a large one's. Nothing where that is not known either.
std::optional<Threshold> expected_least(const Cluster& cluster, const std::string& algorithm, Bytes size);

}  // namespace polyring
