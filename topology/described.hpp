// A cluster that somebody describes by a few numbers: what they say, and the Cluster that is built from it
// with the parts that presets are made of. topology/inventory/formats/machine_toml.hpp reads such
// descriptions.
#pragma once

#include <optional>
#include <string>

#include "topology/cluster.hpp"
#include "topology/nic_protocol.hpp"

namespace polyring {

/// A value, and where it was stated: "site.toml:3". Errors begin with that, and citations end with it.
template <typename Value>
struct Stated {
  Value value{};
  std::string where;
};

/// How NVLinks or xGMI links join the GPUs of a host.
enum class GpuTopology {
  switches,   // all on NVSwitches
  mesh,       // as many links between every two
  cube_mesh,  // eight GPUs as in a DGX-1
  pairs,      // 0 with 1, 2 with 3, …
};

enum class NicPlace { pci_switch, socket };

/// What is left out gets a usual value, which the machine cites as assumed.
struct MachineDescription {
  struct Sockets {
    std::optional<Stated<int>> count;
    std::optional<Stated<std::string>> model;
    std::optional<Stated<int>> cores;
    std::optional<Stated<Bytes>> memory;
    std::optional<Stated<Bandwidth>> memory_bandwidth;
    std::optional<Stated<Bandwidth>> bus;  // between two sockets, per direction
  };
  struct Gpus {
    std::optional<Stated<int>> count;
    std::optional<Stated<std::string>> product;  // as in presets/products.hpp
    std::optional<Stated<std::string>> nvlink;   // its version, "xgmi", or "none": PCIe alone
    std::optional<Stated<GpuTopology>> topology;
    std::optional<Stated<int>> links;  // of each GPU, that are used
  };
  struct Nics {
    std::optional<Stated<int>> count;
    std::optional<Stated<int>> per_switch;    // instead of the count
    std::optional<Stated<std::string>> rate;  // "ndr", "400Gb/s", "100GbE"
    std::optional<Stated<NicProtocol>> kind;
    std::optional<Stated<NicPlace>> place;
  };
  struct Pcie {
    std::optional<Stated<int>> generation;
    std::optional<Stated<int>> switches;  // of a host; 0: GPUs and NICs hang on the sockets
  };
  struct Network {
    std::optional<Stated<int>> hosts_per_leaf;
    std::optional<Stated<double>> oversubscription;
    std::optional<Stated<Seconds>> latency;        // from NIC to NIC under one leaf, one way
    std::optional<Stated<Seconds>> spine_latency;  // added between leaves
  };

  std::string file;
  std::string name;
  std::optional<Stated<std::string>> base;  // a preset, from which the rest differs
  std::optional<Stated<int>> hosts;
  Sockets sockets;
  Gpus gpus;
  Nics nics;
  Pcie pcie;
  Network fabric;
};

/// The cluster, which validates. Throws a usage Error that begins with where the fault was stated: unknown
/// products, numbers that contradict each other or the product's, several hosts without NICs, and what cannot
/// differ from a base.
Cluster described_cluster(const MachineDescription& description);

}  // namespace polyring
