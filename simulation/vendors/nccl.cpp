// NCCL's ring or tree on the cluster as NCCL sees it: its own link speeds, narrowed by what its protocol
// costs, and its own latencies in place of the links'.
#include <algorithm>
#include <cctype>
#include <limits>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "base/index.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "simulation/vendors/nccl_tuner.hpp"
#include "simulation/vendors/vendor_run.hpp"
#include "topology/device_identity.hpp"
#include "topology/gpu_links.hpp"
#include "topology/path.hpp"
#include "topology/rank_nics.hpp"
#include "topology/route.hpp"

namespace polyring {
namespace {

/// The GPUs' NVLinks: GB/s of one as NCCL counts it, and as it is.
struct Nvlink {
  int capability;
  double counted;
  double nominal;
};

/// ncclTopoNVLinkBw() in src/graph/topo.h, NCCL 2.27: SM60_NVLINK_BW and so on.
double nccl_counts(int capability) {
  if (capability >= 100) return 40.1;
  if (capability >= 90) return 20.6;
  if (capability == 86) return 12;
  return capability >= 70 ? 20 : 18;
}

/// PCI_BW in place of what 16 lanes of the third generation carry; NCCL counts others in proportion.
constexpr double kPciCounted = 12 / 15.75;

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

/// Nothing for GPUs that have none, or that are not known.
std::optional<Nvlink> nvlink_of(const Machine& machine) {
  if (machine.gpus.empty()) return std::nullopt;
  const int capability = identity_of(machine.gpus.front().model).compute_capability;
  const Bandwidth nominal = nvlink_rate(capability).bandwidth;
  if (!nominal.known()) return std::nullopt;
  return Nvlink{capability, nccl_counts(capability), nominal.gigabytes_per_second()};
}

bool has_amd_gpus(const Machine& machine) {
  constexpr unsigned kAmd = 0x1002;  // PCI vendor
  return std::ranges::any_of(machine.gpus,
                             [](const Gpu& gpu) {
                               const DeviceIdentity identity = identity_of(gpu.model);
                               return identity.vendor == kAmd || !identity.architecture.empty() ||
                                      contains(gpu.model, "AMD") || contains(gpu.model, "Instinct");
                             }) ||
         std::ranges::any_of(machine.links, [](const Link& link) { return link.kind == LinkKind::xgmi; });
}

std::string processor(const Machine& machine) {
  return machine.packages.empty() ? "" : machine.packages.front().model;
}

/// A Xeon Scalable's generation is the second digit of its number: 8480 is of the fourth. 0: another one.
int xeon_scalable(const std::string& model) {
  for (const std::string_view family : {"Platinum ", "Gold ", "Silver ", "Bronze "}) {
    const std::size_t at = model.find(family);
    if (at == std::string::npos || at + family.size() + 1 >= model.size()) continue;
    const char digit = model[at + family.size() + 1];
    if (std::isdigit(static_cast<unsigned char>(digit)) != 0) return digit - '0';
  }
  return 0;
}

/// What NCCL counts on between two sockets, in GB/s; nothing for processors that it has no number for. Xeons
/// of the fifth generation (ERP_QPI_BW) and Arm (ARM_BW) by NCCL 2.30.
std::optional<double> between_sockets(const Machine& machine) {
  const std::string model = processor(machine);
  if (!machine.packages.empty() && machine.packages.front().cpu.architecture == "arm64") return 6;
  if (contains(model, "POWER")) return 32;
  if (contains(model, "AMD")) return 16;
  if (!contains(model, "Intel")) return std::nullopt;
  const int generation = xeon_scalable(model);
  return generation >= 5 ? 40 : generation >= 4 ? 22 : generation >= 1 ? 10 : 6;
}

/// Links as NCCL counts them, without latencies: NCCL's own take their place.
Machine as_counted(Machine machine) {
  const auto nvlink = nvlink_of(machine);
  const auto sockets = between_sockets(machine);
  for (Link& link : machine.links) {
    link.latency = {};
    if (link.kind == LinkKind::nvlink) {
      if (!nvlink) {
        usage_error(
            "how fast an NVLink of '{}' is for NCCL is unknown (it is for P100 to B300, by their names or a "
            "file's sm); leave nccl out",
            machine.gpus.front().model);
      }
      link.bandwidth = nvlink->counted / nvlink->nominal * link.bandwidth;
    } else if (link.kind == LinkKind::pcie) {
      link.bandwidth = kPciCounted * link.bandwidth;
    } else if (link.kind == LinkKind::socket_bus && sockets) {
      const Bandwidth counted = gigabytes_per_second(*sockets);
      link.bandwidth = link.bandwidth.known() ? std::min(link.bandwidth, counted) : counted;
    }
  }
  return machine;
}

/// The NVLinks of a GPU to each other GPU, by index; nothing where there is none.
std::vector<std::vector<Link*>> nvlink_mesh(Machine& machine) {
  std::vector<std::vector<Link*>> mesh(machine.gpus.size(), std::vector<Link*>(machine.gpus.size()));
  for (Link& link : machine.links) {
    if (link.kind != LinkKind::nvlink || link.from.kind != DeviceKind::gpu || link.to.kind != DeviceKind::gpu)
      continue;
    mesh[index(link.from.index)][index(link.to.index)] = &link;
    mesh[index(link.to.index)][index(link.from.index)] = &link;
  }
  return mesh;
}

/// Appends GPUs to the way until it is a ring over all of them; false, and the way as it was, when none is.
bool close_ring(const std::vector<std::vector<Link*>>& mesh, std::vector<int>& way) {
  const std::vector<Link*>& next = mesh[index(way.back())];
  if (way.size() == mesh.size()) return next[index(way.front())] != nullptr;
  for (int gpu = 0; gpu < static_cast<int>(mesh.size()); ++gpu) {
    if (next[index(gpu)] == nullptr || std::find(way.begin(), way.end(), gpu) != way.end()) continue;
    way.push_back(gpu);
    if (close_ring(mesh, way)) return true;
    way.pop_back();
  }
  return false;
}

/// Where NVLinks join the GPUs of a host to a mesh, NCCL lays several rings, which together use all of them.
/// In their place one ring is laid that has the width of all, and the ranks follow it.
void follow_nvlinks(Machine& machine) {
  if (machine.gpus.size() < 3) return;
  const std::vector<std::vector<Link*>> mesh = nvlink_mesh(machine);
  std::vector<int> ring{0};
  if (!close_ring(mesh, ring)) return;
  double width = std::numeric_limits<double>::infinity();
  for (const std::vector<Link*>& links : mesh) {
    double all = 0;
    for (const Link* link : links) all += link == nullptr ? 0 : link->bandwidth.value;
    width = std::min(width, all);
  }
  std::vector<int> position(ring.size());
  for (std::size_t i = 0; i < ring.size(); ++i) {
    position[index(ring[i])] = static_cast<int>(i);
    mesh[index(ring[i])][index(ring[(i + 1) % ring.size()])]->bandwidth = {width};
  }
  const std::vector<Gpu> gpus = machine.gpus;
  for (std::size_t i = 0; i < ring.size(); ++i) machine.gpus[i] = gpus[index(ring[i])];
  for (Link& link : machine.links) {
    for (DeviceId* end : {&link.from, &link.to}) {
      if (end->kind == DeviceKind::gpu) end->index = position[index(end->index)];
    }
  }
}

void narrow(Cluster& cluster, double factor) {
  cluster.fabric.leaf_uplink = factor * cluster.fabric.leaf_uplink;
  for (Pods& pods : cluster.fabric.pods) pods.uplink = factor * pods.uplink;
  for (HostGroup& group : cluster.groups) {
    for (Link& link : group.machine.links) link.bandwidth = factor * link.bandwidth;
    for (Nic& nic : group.machine.nics) {
      for (Port& port : nic.ports) port.bandwidth = factor * port.bandwidth;
    }
  }
}

/// Rings in rank order; those over several hosts leave them from each GPU in turn, so that all NICs carry
/// equally much.
Plan ring_plan(int gpus, int hosts) { return {"ring", {gpus, hosts}, {}, hosts > 1 ? gpus : 1, {}}; }

/// The bandwidth of a ring plan's lanes together: of its narrowest resource, by how many lanes cross it.
/// Its ranks are `stride` apart. `all`: also between hosts.
Bandwidth ring_bandwidth(const Plan& plan, int stride, const Cluster& cluster, const Router& router,
                         bool all) {
  const int ranks = plan.ranks();
  const Schedule schedule = make_schedule(plan, ranks, ranks, 1);
  std::map<ResourceId, double> crossings;
  std::vector<Transfer> sends;
  std::vector<Crossing> route;
  for (int lane = 0; lane < plan.lanes; ++lane) {
    const Dimension& ring = schedule.lanes[index(lane)].dimensions.front();
    for (Rank rank = 0; rank < ranks; ++rank) {
      const Rank from = rank * stride;
      const Rank to = ring.rank_at(rank, (ring.position(rank) + 1) % ranks) * stride;
      if (!all && !cluster.in_one_domain(cluster.place(from).host, cluster.place(to).host)) continue;
      route.clear();
      router.route(from, to, route);
      for (const Crossing& crossing : route) crossings[crossing.resource] += crossing.share;
    }
  }
  double narrowest = std::numeric_limits<double>::infinity();
  for (const auto& [resource, number] : crossings) {
    narrowest = std::min(narrowest, router.bandwidth(resource).value * plan.lanes / number);
  }
  return {narrowest};
}

/// NCCL's channels: one for each NIC between hosts that is a group's share, one for each NVLink's worth of a
/// ring inside one. An NVLink domain counts as one host.
int channels_of(const Cluster& cluster, GroupShape shape, Bandwidth in_host) {
  constexpr int kMostChannels = 32;  // MAXCHANNELS / 2 of ringGraph in src/init.cc, NCCL 2.30
  const Machine& machine = cluster.host(0);
  if (shape.hosts == 1) {
    const auto nvlink = nvlink_of(machine);
    const double one = nvlink ? nvlink->counted : 12;
    return std::max(1, static_cast<int>(in_host.gigabytes_per_second() / one));
  }
  const int nics = cluster.hosts_per_domain() * static_cast<int>(usable_nics(machine).size());
  return std::clamp(nics * shape.in_host / cluster.ranks_per_domain(), 1,
                    std::min(shape.in_host, kMostChannels));
}

/// LL128 needs a generation that NCCL tested, NVLink between all GPUs, and NICs beside them on PCIe switches,
/// or from Hopper on beside their processor, where NVLink-C2C leads (NCCL_LL128_C2C, NCCL 2.30).
bool ll128_enabled(const Machine& machine, int capability, bool nvlink, int hosts) {
  if (!nvlink || (capability != 70 && capability != 80 && capability < 90)) return false;
  if (hosts == 1) return true;
  for (int gpu = 0; gpu < machine.ranks(); ++gpu) {
    bool near = false;
    for (int nic = 0; nic < static_cast<int>(machine.nics.size()); ++nic) {
      const auto path = find_path(machine, {DeviceKind::gpu, gpu}, {DeviceKind::nic, nic});
      near = near || (path && path->type <= (capability >= 90 ? PathType::p2c : PathType::pxb));
    }
    if (!near) return false;
  }
  return true;
}

NcclSystem system_of(const Cluster& counted, const Plan& ring, GroupShape shape, int stride) {
  const Machine& machine = counted.host(0);
  const auto nvlink = nvlink_of(machine);
  NcclSystem system;
  system.ranks = shape.members();
  system.hosts = shape.hosts;
  system.capability = nvlink ? nvlink->capability : 60;
  system.power = contains(processor(machine), "POWER");
  system.amd = contains(processor(machine), "AMD");
  system.nvlink = shape.in_host > 1;
  // Members on one host; those of an NVLink domain's other hosts are reached in the same way.
  const int on_host = std::min(shape.in_host, std::max(1, machine.ranks() / stride));
  for (int member = 0; on_host > 1 && member < on_host && system.nvlink; ++member) {
    const int next = (member + 1) % on_host;
    const auto path =
        find_path(machine, machine.rank_device(member * stride), machine.rank_device(next * stride));
    system.nvlink = path && path->type == PathType::nvl;
  }
  const Router router(counted);
  system.between_hosts = ring_bandwidth(ring, stride, counted, router, true);
  system.in_host =
      shape.in_host > 1 ? ring_bandwidth(ring, stride, counted, router, false) : system.between_hosts;
  system.channels = channels_of(counted, shape, system.in_host);
  system.ll128 = ll128_enabled(machine, system.capability, system.nvlink, system.hosts);
  return system;
}

/// NCCL's latency of a tree's hop with Simple is that of a chunk, "base lat + 256k/12GB/s"; the chunk's own
/// way is simulated.
Seconds without_chunk(Seconds hop) {
  const Seconds chunk = Bytes{256 << 10} / gigabytes_per_second(12);
  return hop > chunk ? hop - chunk : hop;
}

void run_ring(VendorRun& run, const NcclEstimate& choice, int ranks) {
  const int steps = (run.call.collective == Collective::allreduce ? 2 : 1) * (ranks - 1);
  // NCCL posts a ring's messages ahead, so that a byte waits for the hops on its way alone; here ranks go
  // step by step, and a slow hop holds all of them up. With the mean hop both take the same.
  run.costs.message_in_host = 1.0 / steps * (choice.latency - choice.base);
  run.costs.message_between_hosts = run.costs.message_in_host;
}

void run_tree(VendorRun& run, const NcclSystem& system, const NcclEstimate& choice, Bytes payload) {
  run.plan = {"chain-tree",
              {system.ranks / system.hosts, system.hosts},
              {},
              system.channels,
              nccl_tree_chunk(system, choice.protocol, payload)};
  const bool chunk_in_hop = choice.protocol == NcclProtocol::simple;
  run.costs.message_in_host = chunk_in_hop ? without_chunk(choice.hop_in_host) : choice.hop_in_host;
  run.costs.message_between_hosts =
      chunk_in_hop ? without_chunk(choice.hop_between_hosts) : choice.hop_between_hosts;
  // NCCL's buffers hold eight chunks for each hop, up and down: the way as a whole limits nothing.
  run.window = kMostStreams;
}

std::vector<Citation> inputs_of(const VendorRun& run, const NcclSystem& system, const NcclEstimate& choice,
                                Bytes payload) {
  const std::string tuning(kNcclTuning);
  return {{fmt::format("{} for {} over {} ranks: expected {}, the least of all that are enabled", run.choice,
                       to_text(payload), system.ranks, to_text(choice.time(payload))),
           tuning},
          {fmt::format("{} once, hops of {} in a host and {} between", to_text(choice.base),
                       to_text(choice.hop_in_host), to_text(choice.hop_between_hosts)),
           tuning},
          {fmt::format("rings of {} in a host, {} over all, {:.0f} % of it payload; {} channels",
                       to_text(system.in_host), to_text(system.between_hosts), 100 * choice.efficiency,
                       system.channels),
           std::string(kNcclLinks) + ", " + tuning + "; channels: one a NIC, or an NVLink's worth, assumed"},
          {fmt::format("simulated as {}, {}; ranks follow a ring of NVLinks, as wide as all of NCCL's rings, "
                       "where there is one",
                       to_text(run.plan),
                       choice.algorithm == NcclAlgorithm::ring
                           ? "each step charged the mean hop"
                           : "hops of Simple less the 256 KiB chunk that NCCL counts in"),
           "this model"}};
}

/// Sends and receives in a group call of NCCL's: all at once, by the protocol Simple.
void send_to_all(VendorRun& run, GroupShape shape) {
  const NcclHops hops = nccl_ring_hops(NcclProtocol::simple);
  run.choice = "send and receive, Simple";
  run.plan = {"direct", {shape.members()}, {}, 1, {}};
  run.once = nccl_ring_base(NcclProtocol::simple);
  run.costs.message_in_host = nvlink_of(run.view.host(0)) ? hops.nvlink : hops.pci;
  run.costs.message_between_hosts = hops.network;
  run.inputs = {
      {fmt::format("alltoall as sends to all others at once: {} once, {} a message in a host and {} "
                   "between",
                   to_text(run.once), to_text(run.costs.message_in_host), to_text(hops.network)),
       std::string(kNcclTuning) + "; assumed of sends, which that file does not know"}};
}

}  // namespace

std::string why_no_nccl(const Cluster& cluster) {
  for (const HostGroup& group : cluster.groups) {
    const Machine& machine = group.machine;
    if (has_amd_gpus(machine)) {
      return fmt::format(
          "NCCL runs on GPUs of NVIDIA, '{}' is AMD's, and its RCCL is not modelled; leave nccl out",
          machine.gpus.front().model);
    }
    if (machine.ranks() != cluster.host(0).ranks())
      return "NCCL is modelled for hosts of equally many GPUs; leave nccl out, or choose such hosts";
  }
  if (!cluster.domains_are_equal()) {
    return fmt::format(
        "NCCL is modelled for NVLink domains of equally many hosts, and {} hosts do not fill domains of {}; "
        "leave "
        "nccl out, or choose a number of hosts that does",
        cluster.host_count(), cluster.hosts_per_domain());
  }
  return {};
}

VendorRun nccl_run(const Cluster& cluster, Bytes payload, const VendorCall& call) {
  const std::string why = why_no_nccl(cluster);
  if (!why.empty()) usage_error("{}", why);
  // NCCL's nodes are by what its search reaches over NVLink: an NVLink domain is one (comm->nNodes in
  // src/init.cc; the topologies of a clique's hosts are fused in src/graph/topo.cc).
  const int gpus = cluster.ranks_per_domain();
  const GroupShape shape = shape_of(call, cluster);
  VendorRun run;
  run.call = call;
  run.view = cluster;
  for (HostGroup& group : run.view.groups) {
    group.machine = as_counted(std::move(group.machine));
    if (shape.in_host == gpus) follow_nvlinks(group.machine);
  }
  run.view.fabric.latency = {};
  run.view.fabric.spine_latency = {};
  run.plan = ring_plan(shape.in_host, shape.hosts);
  if (shape.members() == 1) {
    run.choice = "nothing to send";
    return run;
  }
  if (call.collective == Collective::alltoall) {
    send_to_all(run, shape);
    return run;
  }
  const NcclSystem system = system_of(run.view, run.plan, shape, call.stride);
  const NcclEstimate choice = nccl_choice(system, payload, call.collective);
  run.choice = fmt::format("{}, {}", to_text(choice.algorithm), to_text(choice.protocol));
  run.once = choice.base;
  if (choice.algorithm == NcclAlgorithm::ring) {
    run_ring(run, choice, system.ranks);
  } else {
    run_tree(run, system, choice, payload);
  }
  narrow(run.view, choice.efficiency);
  run.inputs = inputs_of(run, system, choice, payload);
  return run;
}

}  // namespace polyring
