// What the libraries find in libpolyring_topology.so.
#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/files.hpp"
#include "collectives/library/topology/build.hpp"
#include "collectives/library/topology/topology.hpp"
#include "simulation/topology_planner.hpp"
#include "topology/inventory/formats/probe_json.hpp"
#include "topology/inventory/inventory.hpp"
#include "topology/inventory/job_hosts.hpp"
#include "topology/inventory/probe.hpp"

namespace polyring::library {
namespace {

Inventory inventory_of_all(std::span<const std::string> descriptions, const std::string& what) {
  std::vector<Inventory> parts;
  for (const std::string& text : descriptions) parts.push_back(parse_inventory_json(text, what));
  return parts.size() == 1 ? std::move(parts.front()) : merged(std::move(parts));
}

/// Plans allreduces as for the nearest power of two: a program that calls with ever other counts does not
/// wait for prices each time.
class PlansBySize final : public Planner {
 public:
  explicit PlansBySize(Cluster cluster, bool on_gpus) : planner_(std::move(cluster), on_gpus) {}

  /// For one thread at a time, as the communicator that asks.
  PlanChoice choose(const Problem& problem, const PlanConstraints& constraints) const override {
    if (problem.collective != Collective::allreduce) return planner_.choose(problem, constraints);
    Problem nearest = problem;
    const auto count = static_cast<std::uint64_t>(std::max<Count>(problem.count, 1));
    nearest.count = static_cast<Count>(std::bit_floor(count + count / 2));
    Asked asked{nearest.algorithm, nearest.count, nearest.sizes.payload, nearest.sizes.partial, constraints};
    const auto known = std::ranges::find(known_, asked, &Known::asked);
    if (known != known_.end()) return known->choice;
    return known_.emplace_back(Known{std::move(asked), planner_.choose(nearest, constraints)}).choice;
  }

 private:
  struct Asked {
    std::string algorithm;
    Count count = 0;
    int payload_size = 0;
    int partial_size = 0;
    PlanConstraints constraints;

    bool operator==(const Asked&) const = default;
  };
  struct Known {
    Asked asked;
    PlanChoice choice;
  };

  TopologyPlanner planner_;
  mutable std::vector<Known> known_;
};

static_assert(kMostPlannedRanks == kMostPricedRanks);

class Topology final : public TopologyPlugin {
 public:
  std::string probe() override { return probe_json(inventory_of(probe_without_gpus())); }

  std::string read(const std::string& file) override {
    std::string text = read_file(file);
    parse_inventory_json(text, file);
    return text;
  }

  std::unique_ptr<Planner> make_planner(std::span<const std::string> descriptions, const JobRanks& job,
                                        const std::string& what, std::string& why) override {
    bool on_gpus = false;
    for (const HostRanks& host : job.ranks) {
      on_gpus = on_gpus || !host.gpus.empty();
    }
    const Inventory inventory = inventory_of_all(descriptions, what);
    // Several probes are of the job's hosts, in its order, whatever they call themselves.
    Cluster cluster = descriptions.size() == 1 ? hosts_of_job(inventory, job.hosts, what) : inventory.cluster;
    cluster.fabric.hosts_per_nvlink_domain = 0;  // ranks of several hosts are joined by NICs
    const auto known = with_typical_speeds(with_ranks_of(std::move(cluster), job.ranks, what), on_gpus, why);
    if (!known) {
      if (why.ends_with("is unknown"))
        why += "; give it in the file that POLYRING_CLUSTER names, see docs/library.md";
      return nullptr;
    }
    return std::make_unique<PlansBySize>(*known, on_gpus);
  }
};

}  // namespace
}  // namespace polyring::library

extern "C" [[gnu::visibility("default")]] polyring::library::TopologyPlugin* polyring_topology_plugin(
    const char* build) {
  static polyring::library::Topology plugin;
  return std::string_view(build) == polyring::kTopologyBuild ? &plugin : nullptr;
}
