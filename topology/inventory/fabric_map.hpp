// FabricMap: the switches and adapters of an InfiniBand network and the cables between them, as a subnet
// manager's tools list them; and what follows from it: levels of switches, leaves, rails.
//
// A leaf is a switch that hosts' adapters hang on. In a fat tree, links lead from each level to the next
// only, and hosts under one leaf reach each other without the levels above. Where the hosts' adapters hang on
// several leaves each ("rails"), the leaves that the same hosts share make up one neighbourhood. Rails can
// also be networks of their own, "planes", each with a subnet manager and a file: merged() puts them
// together.
#pragma once

#include <string>
#include <vector>

#include "base/units.hpp"

namespace polyring {

struct FabricSwitch {
  std::string guid;  // sixteen hexadecimal digits
  std::string name;
  int level = 0;  // 1: leaf; 2: joined to leaves; …; 0: no way leads to a host
};

enum class AdapterKind {
  host,
  aggregation,  // the part of a switch that reduces (SHARP): an adapter to the subnet, but of no host
  router,
};

struct FabricAdapter {
  std::string guid;  // the node's
  std::string name;  // its description: "node07 mlx5_0"
  AdapterKind kind = AdapterKind::host;
  std::string host;    // "node07"; empty where the description does not say
  std::string device;  // "mlx5_0" or "HCA-1"; empty where the description does not say
  std::vector<std::string> port_guids;
  int plane = 0;  // of FabricMap::planes
};

/// One end of a cable: a port of a switch or of an adapter.
struct FabricEnd {
  bool is_switch = false;
  int index = 0;
  int port = 0;
  auto operator<=>(const FabricEnd&) const = default;
};

struct FabricLink {
  FabricEnd a, b;
  std::string rate;     // "4xNDR"
  Bandwidth bandwidth;  // per direction; 0 when the rate is unknown
};

struct FabricMap {
  std::string source;               // the file's name; of several "rail0.out, rail1.out"
  std::vector<std::string> planes;  // the names of the files
  std::vector<FabricSwitch> switches;
  std::vector<FabricAdapter> adapters;
  std::vector<FabricLink> links;
  std::vector<std::string> remarks;  // what is odd or damaged, in whole sentences

  const std::string& name(FabricEnd end) const {
    const auto at = static_cast<std::size_t>(end.index);
    return end.is_switch ? switches[at].name : adapters[at].name;
  }
};

/// "e09d730300156ff6" of "0xe09d730300156ff6", "e09d:7303:0015:6ff6" or "2c90300"; empty for what is no GUID
/// or 0.
std::string normal_guid(std::string_view text);

/// Networks that share no switch, as one map. An adapter with a port in several of them is in each. Levels
/// must be assigned. Throws a usage Error for two of one network: they have a switch in common.
FabricMap merged(std::vector<FabricMap> planes);

/// Sets the levels of all switches, and remarks what keeps the network from being a fat tree. A switch with a
/// few adapters among many cables to leaves is not taken for a leaf.
void assign_levels(FabricMap& map);

/// A leaf and what hangs on it.
struct Leaf {
  int switch_index = 0;
  std::vector<int> adapters;  // of hosts
  int uplinks = 0;            // to switches of the next level
  Bandwidth down, up;         // all links together, per direction; 0 when the rate of one is unknown
};

/// The leaves in the order of the switches. Levels must be assigned.
std::vector<Leaf> leaves_of(const FabricMap& map);

/// Leaves that most of their hosts share: those hosts are near each other.
struct Neighbourhood {
  std::vector<int> leaves;  // indices into leaves_of()
  std::vector<std::string> hosts;
  Bandwidth up;  // all uplinks of the leaves, per direction; 0 when unknown
};

/// Leaves that reach each other by switches of one level and below it: a pod of a tree of three levels. Those
/// that most of their hosts share are in one, though they may reach each other only further up, or not at
/// all.
struct Pod {
  std::vector<int> leaves;  // indices into leaves_of()
  int uplinks = 0;          // of its switches of that level, to the next one
  Bandwidth down, up;  // of all leaves to hosts, and all uplinks, per direction; 0 when a rate is unknown
};

/// The pods of each level from 2 to the last but one, in the order of their first leaf; none of a level whose
/// switches join all leaves.
std::vector<std::vector<Pod>> pods_of(const FabricMap& map, const std::vector<Leaf>& leaves);

/// Each leaf is in one. A host belongs where most of its adapters hang. In the order of the first leaf.
std::vector<Neighbourhood> neighbourhoods_of(const FabricMap& map, const std::vector<Leaf>& leaves);

}  // namespace polyring
