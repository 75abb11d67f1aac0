#include "simulation/vendors/nccl_tuner.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace polyring {
namespace {

using enum NcclProtocol;

constexpr std::array kProtocols{ll, ll128, simple};
using ByProtocol = std::array<double, 3>;

// Microseconds.
constexpr ByProtocol kRingBase{6.6, 14.0, 8.4};
constexpr ByProtocol kTreeBase{6.8, 14.0, 0};
struct Hops {
  ByProtocol nvlink;
  ByProtocol pci;
  ByProtocol network;
};
constexpr Hops kRingHops{{0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 14.0}};
constexpr Hops kTreeHops{{0.6, 1.25, 28}, {1.0, 1.9, 28}, {5.0, 8.5, 28}};

// Caps in GB/s. Rows: up to Volta, Ampere, Hopper, and Blackwell by NCCL 2.30; columns: 1 host, 2, more.
using Caps = std::array<std::array<double, 3>, 4>;
constexpr Caps kMostLl{{{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {87.7, 22.5, 19.0}, {282.0, 90.0, 70.0}}};
constexpr Caps kMostRingLl128{
    {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 36.7}, {40.0, 40.0, 40.0}}};
constexpr Caps kMostTreeLl128{
    {{20.0, 20.0, 20.0}, {20.0, 20.0, 20.0}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}}};
constexpr Caps kMostTree{{{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}}};

/// What NCCL corrects the bandwidth of trees with: payloads of 64 B, 128 B, … up to 256 MiB.
constexpr std::array<std::array<double, 23>, 3> kTreeCorrection{
    {{1., 1., 1., 1., .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1., 1., 1., 1.},
     {1., 1., 1., 1., 1., .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1., 1.},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}}};

std::size_t index(NcclProtocol protocol) { return static_cast<std::size_t>(protocol); }

int log2_floor(std::uint64_t n) {
  return static_cast<int>(std::bit_width(std::max<std::uint64_t>(n, 1))) - 1;
}

double cap(const NcclSystem& system, const Caps& caps) {
  const int capability = system.capability;
  const std::size_t row = capability >= 100 ? 3 : capability >= 90 ? 2 : capability >= 80 ? 1 : 0;
  return caps[row][static_cast<std::size_t>(std::min(system.hosts, 3) - 1)] * 1e9;
}

/// For LL the rows stand for GPUs only inside one host; beyond, for Intel's or IBM's and AMD's processors.
double most_ll(const NcclSystem& system) {
  if (system.hosts == 1) return cap(system, kMostLl);
  return kMostLl[system.amd ? 1 : 0][system.hosts == 2 ? 1 : 2] * 1e9;
}

/// All channels together.
double links(const NcclSystem& system) {
  return system.hosts <= 2 ? system.in_host.value : system.between_hosts.value;
}

double ring_bandwidth(const NcclSystem& system, NcclProtocol protocol) {
  const double all = links(system);
  if (protocol == ll) return std::min(most_ll(system), all / 4);
  if (protocol == simple) return all;
  const bool one_gpu = system.ranks < 2 * system.hosts;
  return std::min(all * (one_gpu ? 0.7 : 0.92), system.channels * cap(system, kMostRingLl128));
}

double tree_bandwidth(const NcclSystem& system, NcclProtocol protocol) {
  const double all = std::min(links(system) * 0.92, system.channels * cap(system, kMostTree));
  if (protocol == ll) return std::min(all / 3.8, most_ll(system));
  if (protocol == simple) return all;
  return std::min(all * (system.hosts == 1 ? 7.0 / 9 : 120.0 / 128),
                  system.channels * cap(system, kMostTreeLl128));
}

NcclEstimate ring(const NcclSystem& system, NcclProtocol protocol, Bytes payload, Collective collective) {
  const std::size_t at = index(protocol);
  // Inside a host, too, each step of a ring over several has to be posted to the network.
  double posting = 0;
  if (system.hosts > 1) posting = (system.amd ? 2.0 : 1.0) * (protocol == simple ? 3 : 1);
  const int passes = collective == Collective::allreduce ? 2 : 1;  // around the ring
  const int hops = passes * (system.ranks - 1);
  const int far = passes * (system.hosts - 1);
  NcclEstimate result;
  result.algorithm = NcclAlgorithm::ring;
  result.protocol = protocol;
  result.base = microseconds(kRingBase[at]);
  result.hop_in_host =
      microseconds(std::max((system.nvlink ? kRingHops.nvlink : kRingHops.pci)[at], posting));
  result.hop_between_hosts = microseconds(kRingHops.network[at]);
  // "Plateau effect of ring".
  const bool plateau = protocol == simple && system.hosts > 1 &&
                       payload.value / static_cast<std::uint64_t>(system.channels * system.ranks) >= 64;
  if (plateau) {
    const double factor = system.capability < 80 ? 1.9 : 1.4;
    for (Seconds* time : {&result.base, &result.hop_in_host, &result.hop_between_hosts})
      *time = factor * *time;
  }
  result.latency = result.base + (hops - far) * result.hop_in_host + far * result.hop_between_hosts;
  const double bus = ring_bandwidth(system, protocol);
  result.efficiency = bus / links(system);
  result.bandwidth = {bus * system.ranks / hops};
  return result;
}

NcclEstimate tree(const NcclSystem& system, NcclProtocol protocol, Bytes payload) {
  const std::size_t at = index(protocol);
  NcclEstimate result;
  result.algorithm = NcclAlgorithm::tree;
  result.protocol = protocol;
  result.base = microseconds(kTreeBase[at]);
  double in_host = (system.nvlink ? kTreeHops.nvlink : kTreeHops.pci)[at];
  if (system.power && !system.nvlink && protocol == simple) in_host = kRingHops.pci[at];
  result.hop_in_host = microseconds(in_host);
  result.hop_between_hosts = microseconds(kTreeHops.network[at]);
  const int near = system.ranks / system.hosts - 1;
  const int far = log2_floor(static_cast<std::uint64_t>(system.hosts));
  result.latency = result.base + 2 * near * result.hop_in_host + 2 * far * result.hop_between_hosts;
  const double bus = tree_bandwidth(system, protocol);
  result.efficiency = bus / links(system);
  const auto size = static_cast<std::size_t>(log2_floor(payload.value / 64));
  const double correction = size < kTreeCorrection[at].size() ? kTreeCorrection[at][size] : 1;
  result.bandwidth = {bus / 2 * correction};
  return result;
}

}  // namespace

NcclHops nccl_ring_hops(NcclProtocol protocol) {
  const std::size_t at = index(protocol);
  return {microseconds(kRingHops.nvlink[at]), microseconds(kRingHops.pci[at]),
          microseconds(kRingHops.network[at])};
}

Seconds nccl_ring_base(NcclProtocol protocol) { return microseconds(kRingBase[index(protocol)]); }

std::string_view to_text(NcclAlgorithm algorithm) {
  return algorithm == NcclAlgorithm::ring ? "ring" : "tree";
}

std::string_view to_text(NcclProtocol protocol) {
  return protocol == ll ? "LL" : protocol == ll128 ? "LL128" : "Simple";
}

std::vector<NcclEstimate> nccl_estimates(const NcclSystem& system, Bytes payload, Collective collective) {
  std::vector<NcclEstimate> estimates;
  for (const NcclProtocol protocol : kProtocols) {
    if (protocol == ll128 && !system.ll128) continue;
    if (collective == Collective::allreduce) estimates.push_back(tree(system, protocol, payload));
    estimates.push_back(ring(system, protocol, payload, collective));
  }
  return estimates;
}

NcclEstimate nccl_choice(const NcclSystem& system, Bytes payload, Collective collective) {
  const std::vector<NcclEstimate> estimates = nccl_estimates(system, payload, collective);
  return *std::min_element(
      estimates.begin(), estimates.end(),
      [&](const NcclEstimate& a, const NcclEstimate& b) { return a.time(payload) < b.time(payload); });
}

Bytes nccl_tree_chunk(const NcclSystem& system, NcclProtocol protocol, Bytes payload) {
  if (protocol == ll) return {32 << 10};
  const auto depth = static_cast<std::uint64_t>(system.ranks / system.hosts - 1 +
                                                log2_floor(static_cast<std::uint64_t>(system.hosts)));
  const auto trees = static_cast<std::uint64_t>(2 * system.channels);
  std::uint64_t chunk = 512 << 10;
  const auto halve = [&](std::uint64_t least_chunks, std::uint64_t least_size) {
    while (payload.value / (trees * chunk) < least_chunks && chunk > least_size) chunk /= 2;
  };
  halve(8 * depth, 128 << 10);
  halve(4 * depth, 64 << 10);
  halve(depth, 32 << 10);
  return {chunk};
}

}  // namespace polyring
