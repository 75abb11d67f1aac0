#include "simulation/topology_planner.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "simulation/vendors/nccl_tuner.hpp"

namespace polyring {
namespace {

/// Large enough that a message's cost does not count, small enough to stay in a core's cache, and it is
/// combined only when all of it is there. No price knows that; see docs/performance.md.
constexpr Bytes kLongestMessage{1 << 20};

/// Speeds for links whose own the topology does not know. Memory is as fast as between the processes of
/// docs/performance.md, latencies are those of the presets' InfiniBand and Ethernet, and PCIe and the bus
/// between sockets are as fast as NCCL takes PCIe 3.0 x16 and Xeons' bus to be (docs/model.md). A message
/// between GPUs takes as long as a hop of NCCL's protocol Simple, in which GPUs wait for whole chunks as in
/// our kernels: over PCIe two links, between hosts one more at each end.
Calibration typical_links(const Machine& host, bool gpus) {
  const bool infiniband = std::ranges::any_of(
      host.nics, [](const Nic& nic) { return nic.up() && nic.kind == NicKind::infiniband; });
  const NcclHops hop = nccl_ring_hops(NcclProtocol::simple);
  const Seconds nvlink = host.nvswitches > 0 ? 0.5 * hop.nvlink : hop.nvlink;
  const Seconds pcie = gpus ? 0.5 * hop.pci : Seconds{};
  const Seconds infinibands = gpus ? Seconds{hop.network.value - hop.pci.value} : microseconds(1.7);
  const Seconds network = infiniband ? infinibands : microseconds(15);
  Calibration typical;
  typical.links = {{LinkClass::memory, microseconds(0.2), gigabytes_per_second(10), 1, {}, {}},
                   {LinkClass::nvlink, nvlink, {}, 1, {}, {}},
                   {LinkClass::pcie, pcie, gigabytes_per_second(12), 1, {}, {}},
                   {LinkClass::socket_bus, {}, gigabytes_per_second(10), 1, {}, {}},
                   {LinkClass::network, network, {}, 1, {}, {}}};
  return typical;
}

}  // namespace

Cluster with_typical_speeds_beside(const Calibration& known, Cluster cluster, bool on_gpus) {
  Calibration typical = typical_links(cluster.host(0), on_gpus);
  std::erase_if(typical.links, [&](const LinkFit& fit) { return known.find(fit.link) != nullptr; });
  return calibrated(std::move(cluster), typical);
}

std::optional<Cluster> with_typical_speeds(const Cluster& cluster, bool on_gpus, std::string& why) {
  try {
    Cluster typical = with_typical_speeds_beside({}, cluster, on_gpus);
    why = Router(typical).unknown_speed();
    if (why.empty()) return typical;
  } catch (const Error& error) {
    why = error.what();  // such as a host without a NIC that is up, or a GPU that is not known
  }
  return std::nullopt;
}

PlanChoice TopologyPlanner::choose(const Problem& problem, const PlanConstraints& constraints) const {
  const bool known = problem.grid.ranks <= kMostPricedRanks || problem.algorithm == kTunedAlgorithm;
  if (problem.collective != Collective::allreduce || !known) return rules_.choose(problem, constraints);
  Problem limited = problem;
  // What goes from GPU to GPU passes no core's cache.
  limited.longest_message = on_gpus_ ? Bytes{} : shorter_of(problem.longest_message, kLongestMessage);
  return prices_.choose(limited, constraints);
}

}  // namespace polyring
