// What an allreduce should reach on a machine: the bounds that its links set, with what limits in words, and
// what each algorithm's best plan reaches of them when it is simulated. All of it is modelled.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/predict/expected_interval.hpp"
#include "bench/predict/published_rates.hpp"
#include "collectives/schedule/bound.hpp"
#include "topology/cluster.hpp"

namespace polyring {

/// Of each rank. The latencies of 2(n − 1) steps are then a few per cent of the time for hundreds of ranks,
/// and nccl-tests' users look at sizes from here on.
inline constexpr Bytes kExpectedPayload{std::uint64_t{1} << 30};

inline constexpr std::string_view kInSwitches = "in the switches of ";

struct ExpectedBound {
  /// "inside minsky", "in the switches of dgx-h100", "between hosts", "between many hosts", "together";
  /// of an NVLink domain of several hosts also "inside a domain of NAME",
  /// "between NVLink domains" and "between many NVLink domains".
  std::string where;
  int hosts = 1;      // 0: many
  int ranks = 0;      // 0: many
  Bandwidth busbw;    // at most; 0 when unknown
  std::string limit;  // the cut, or why nothing is known
};

struct ExpectedAlgorithm {
  std::string algorithm;
  std::string plan;  // the best one
  Seconds time;      // simulated
  Bandwidth busbw;
  std::optional<double> bound_fraction;  // of what the cluster allows
  std::string busiest;                   // resource, and for how much of the time
  std::string unknown{};                 // a link that it crosses and whose speed it would need
};

/// What good implementations reach.
struct ExpectedReach {
  std::string algorithm;  // a contender's name
  ExpectedInterval interval;
};

struct Expectation {
  Bytes payload = kExpectedPayload;
  std::vector<ExpectedBound> bounds;
  std::vector<ExpectedReach> intervals{};     // of those that can run; empty when not asked for
  std::vector<PublishedFloor> floors{};       // of others, for hosts of these GPUs
  std::vector<ExpectedAlgorithm> algorithms;  // the best first; empty when not asked for
  std::string not_simulated{};                // which others are not, and why
};

/// allreduce_bound() over what implementations use: inside a host or NVLink domain the GPUs' fabric alone,
/// and no faster than that where the network carries less. No algorithm that is known sends over NVLinks and
/// PCIe at once.
Bound expected_bound(const Cluster& cluster, Bytes payload);

/// The bounds of each kind of host by itself (of what a ring or a tree uses together; where its switches
/// reduce, of these too), then of the network between hosts and of all together; of one host with NICs that
/// are up what the network allows many such hosts. Takes milliseconds.
Expectation expected_bounds(const Cluster& cluster);

/// With the interval of each implementation that can run, and each algorithm of the catalogue: its best plan
/// for float32 of that payload. Those that would take minutes to simulate on so many ranks are left out, and
/// those all of whose plans cross links of unknown speed.
Expectation expected(const Cluster& cluster);

/// Tables for a terminal.
std::string to_text(const Expectation& expectation);
/// One JSON object.
std::string to_json(const Expectation& expectation);

}  // namespace polyring
