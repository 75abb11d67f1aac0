// Routes between two ranks of a cluster, as the directed resources that they share with other transfers.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "topology/cluster.hpp"
#include "topology/path.hpp"

namespace polyring {

/// Why this cannot be one of several hosts: "node3 has no network port that is up"; empty when it can.
std::string why_alone(const Machine& machine);

/// Index of a resource: one direction of one link of one host, of one NIC, or of one leaf's or pod's uplink.
/// Links that are physically the same are one resource, see physical_links().
using ResourceId = int;

/// A resource that a transfer crosses.
struct Crossing {
  ResourceId resource = 0;
  double share = 1;  // the part of the transfer's bytes that crosses it: less where several NICs share them
};

/// Answers "which resources does a transfer from rank a to rank b use?". Keeps a reference to the cluster.
class Router {
 public:
  /// Throws a usage Error when two ranks of a host are not connected, or hosts of several domains
  /// (Cluster::domain_count()) lack a NIC that is up.
  explicit Router(const Cluster& cluster);

  int resource_count() const { return resource_count_; }
  /// Bytes per second of a resource. Links of unknown bandwidth constrain nothing: they are never in a route.
  Bandwidth bandwidth(ResourceId resource) const;
  /// The first link or NIC of unknown speed that some route crosses: "minsky: the speed of mlx5_0 is
  /// unknown"; empty when all are known.
  std::string unknown_speed() const;
  /// The same, of routes between ranks of one host alone.
  std::string unknown_speed_in_hosts() const;
  /// The same of the route between two ranks.
  std::string unknown_speed(int from_rank, int to_rank) const;
  /// For people: "host 3: gpu0 -> gpu1 (nvlink)", "host 3: mlx5_0 out".
  std::string name(ResourceId resource) const;

  static constexpr int kHost = -1;
  /// Where a resource is: the `resource`-th of a host, or of a leaf or pod, whose uplinks are 0 up and 1
  /// down.
  struct Home {
    int level = kHost;  // or, of those that group hosts: 0 the leaves, then the pods
    int place = 0;      // the host, leaf or pod
    int resource = 0;
  };
  Home home(ResourceId resource) const;
  ResourceId at(const Home& home) const;
  int resources_per_host(int group) const { return hosts_[static_cast<std::size_t>(group)].resources; }
  /// Hosts under each leaf, then under each pod of the first level, and so on: by Home::level.
  std::vector<int> hosts_per_level() const;
  /// Where the resources of a host of the group go when its rank r becomes rank to[r], so that all routes
  /// from, to and between the ranks are the same as before; nothing where they are not.
  std::optional<std::vector<int>> moved(int group, std::span<const int> to) const;

  /// One direction of a host's link or NIC, by their index in its Machine.
  ResourceId of_link(int host, int link, bool forward) const;
  ResourceId of_nic(int host, int nic, bool out) const;

  /// Appends the resources to `route` and returns the one-way latency. Inside an NVLink domain a host is left
  /// and entered by the NVLinks between the rank and the NVSwitches; otherwise by the rank's NICs
  /// (rank_nics()). These carry equal parts.
  Seconds route(int from_rank, int to_rank, std::vector<Crossing>& route) const;

  /// The parts of a route between hosts that lie in them: from a rank out of its NICs, and in through them to
  /// a rank. The cluster has several domains.
  Seconds leave(int rank, std::vector<Crossing>& route) const;
  Seconds enter(int rank, std::vector<Crossing>& route) const;
  /// Appends the uplinks of the leaf of a host, unless they block nothing.
  void cross_leaf(int host, bool up, std::vector<Crossing>& route) const;

 private:
  struct DevicePath {
    std::vector<Crossing> crossings;  // resources relative to the host's first
    Seconds latency;
    std::string unknown{};  // "mlx5_0": the first link or NIC on it that has no speed
  };
  /// Of the first path that has one.
  static const std::string& first_unknown(const std::vector<DevicePath>& paths);
  /// What all hosts of one group have in common.
  struct HostRoutes {
    int group = 0;
    int resources = 0;
    int ranks = 0;
    std::vector<int> physical_links;
    std::vector<DevicePath> between;  // [from * ranks + to]
    std::vector<DevicePath> leave;    // by rank: to its NICs and out
    std::vector<DevicePath> enter;
    std::vector<DevicePath> up;  // by rank: to the NVSwitches of its domain
    std::vector<DevicePath> down;

    /// Of its first path that has one; of all, or of those between its ranks.
    const std::string& unknown() const;
    const std::string& unknown_between() const;
  };

  /// Whose resource it is: the host, its group, and the index among the host's resources.
  struct Owner {
    int group = 0;
    int host = 0;
    int resource = 0;
  };

  static Seconds append(const DevicePath& path, ResourceId first, std::vector<Crossing>& route);
  HostRoutes routes_of(int group) const;
  static void add_links(const Machine& machine, const HostRoutes& host, const Path& path, DevicePath& route);
  static DevicePath through_nics(const Machine& machine, const HostRoutes& host, int rank,
                                 const std::vector<int>& nics, bool out);
  void add_nics(const Machine& machine, HostRoutes& host) const;
  static void add_nvswitches(const Machine& machine, HostRoutes& host);
  int group_of_host(int host) const;
  const DevicePath& between(Place from, Place to) const;
  /// The two parts of a route between hosts, by NVLinks or by NICs.
  const DevicePath& way_out(Place from, Place to) const;
  const DevicePath& way_in(Place from, Place to) const;
  std::string sentence(int group, const std::string& unknown) const;
  ResourceId first_resource(int host, int group) const;
  Owner owner(ResourceId resource) const;

  /// The uplinks of groups of hosts: first of leaves, then of pods from the smaller to the larger.
  struct Uplinks {
    int hosts = 0;  // in each group
    Bandwidth bandwidth;
    ResourceId first = 0;
  };
  void add_uplinks(int hosts, Bandwidth bandwidth);
  static void cross(const Uplinks& uplinks, int host, bool up, std::vector<Crossing>& route);
  /// Of which the resource is one, from uplinks_.front().first on.
  const Uplinks& uplinks_of(ResourceId resource) const;

  const Cluster& cluster_;
  std::vector<HostRoutes> hosts_;  // one per group
  std::vector<int> first_host_;    // per group
  std::vector<ResourceId> first_of_group_;
  std::vector<Uplinks> uplinks_;
  ResourceId first_uplink_ = 0;
  int resource_count_ = 0;
};

}  // namespace polyring
