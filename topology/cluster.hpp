// Cluster: the hosts, and the fabric between them.
#pragma once

#include <string>
#include <vector>

#include "topology/machine.hpp"

namespace polyring {

/// Consecutive hosts under switches that lead up together: a pod of leaves, or a pod of such pods.
struct Pods {
  int hosts = 0;     // in each
  Bandwidth uplink;  // of one pod, all its links up together, per direction; 0: blocks nothing
};

/// The network between hosts. Every NIC reaches every other; what can be scarce is the uplinks of a leaf
/// switch, and of the pods that leaves are joined to.
struct Fabric {
  int hosts_per_leaf = 0;  // 0: one switch that blocks nothing
  Bandwidth leaf_uplink;   // of one leaf, all uplinks together, per direction; 0: blocks nothing
  std::vector<Pods> pods;  // above the leaves, the smaller first; empty: one spine that blocks nothing
  Seconds latency;         // one way, from NIC to NIC under one leaf
  Seconds spine_latency;   // added when the two hosts hang under different leaves
  std::vector<Citation> citations;
  /// Consecutive hosts whose GPUs hang on the same NVSwitches, so that they need no NIC to reach each other:
  /// 18 of a GB200 NVL72. 0: each host has its own.
  int hosts_per_nvlink_domain = 0;
};

/// `count` hosts that are equal. Kept as a group, so that 4,608 hosts cost no more than one.
struct HostGroup {
  Machine machine;
  int count = 1;
};

/// Where a rank lives.
struct Place {
  int host = 0;
  int index_on_host = 0;
};

struct Cluster {
  std::string name;
  std::vector<HostGroup> groups;
  Fabric fabric;

  int host_count() const;
  const Machine& host(int index) const;

  /// Ranks of all hosts, host after host.
  int ranks() const;
  Place place(int rank) const;

  /// A domain is what NICs join: the hosts of an NVLink domain, or else one host. Of hosts that do not fill
  /// the last one, that has fewer.
  int hosts_per_domain() const;
  int domain_count() const;
  /// Whether GPUs of the two hosts reach each other without a NIC.
  bool in_one_domain(int host, int other) const;
  /// Of the first domain.
  int ranks_per_domain() const;
  /// Whether all hosts have equally many ranks, and all domains equally many hosts.
  bool domains_are_equal() const;

  /// Validates every machine and the fabric; throws a usage Error as Machine::validate() does.
  void validate() const;
};

/// `hosts` hosts like this one. Of their fabric nothing is known: it blocks nothing and takes no time.
/// Throws a usage Error for fewer than 1 host.
Cluster cluster_of(Machine machine, int hosts);

/// One domain of the cluster, of hosts like this one: a host alone, or those of an NVLink domain.
Cluster one_domain(const Cluster& cluster, Machine machine);

}  // namespace polyring
