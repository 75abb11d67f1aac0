// Writes what ibnetdiscover would print of a small network, for tests.
#pragma once

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "topology/inventory/formats/ibnetdiscover.hpp"
#include "topology/inventory/probe/sysfs.hpp"

namespace polyring::testing {

class FabricBuilder {
 public:
  /// Nodes are named by their descriptions, and must have been added before they are joined.
  FabricBuilder& add_switch(const std::string& name) { return add(name, 'S'); }
  FabricBuilder& add_adapter(const std::string& name) { return add(name, 'H'); }

  FabricBuilder& join(const std::string& a, int port_a, const std::string& b, int port_b,
                      const std::string& rate = "4xNDR") {
    port(a, port_a, b, port_b, rate);
    port(b, port_b, a, port_a, rate);
    return *this;
  }

  /// What one end says of a cable.
  FabricBuilder& port(const std::string& own, int number, const std::string& peer, int peer_port,
                      const std::string& rate = "4xNDR") {
    const Node& at = nodes_[index_.at(own)];
    const Node& other = nodes_[index_.at(peer)];
    const std::string peer_id = fmt::format("\"{}\"[{}]", other.id(), peer_port);
    const std::string line =
        at.letter == 'S'
            ? fmt::format("[{}]\t{}{}\t\t# \"{}\" lid 7 {}\n", number, peer_id,
                          other.letter == 'S' ? "" : fmt::format("({}) ", other.guid(peer_port)), peer, rate)
            : fmt::format("[{}]({}) \t{}\t\t# lid 3 lmc 0 \"{}\" lid 7 {}\n", number, at.guid(number),
                          peer_id, peer, rate);
    nodes_[index_.at(own)].ports += line;
    return *this;
  }

  /// The GUID of an adapter's port.
  std::string guid(const std::string& adapter, int port) const {
    return nodes_[index_.at(adapter)].guid(port);
  }

  std::string text() const {
    std::string out = "#\n# Topology file: generated on Sun Nov 22 00:00:00 2026\n#\n";
    for (const char letter : {'S', 'H'}) {
      for (const Node& node : nodes_) {
        if (node.letter == letter) out += node.text();
      }
    }
    return out;
  }

 private:
  struct Node {
    std::string name;
    char letter;
    std::size_t number;
    std::string ports;

    std::string id() const { return fmt::format("{}-{:016x}", letter, 0x2c9000000000000ull + 16 * number); }
    std::string guid(int port) const {
      return fmt::format("{:x}", 0x2c9000000000000ull + 16 * number + static_cast<unsigned>(port));
    }
    std::string text() const {
      const std::string word = letter == 'S' ? "switch" : "ca";
      return fmt::format(
          "\nvendid=0x2c9\ndevid=0xd2f2\nsysimgguid=0x1\n{}guid=0x{}\n{}\t65 \"{}\"\t\t# \"{}\"{}\n{}", word,
          guid(0), letter == 'S' ? "Switch" : "Ca", id(), name,
          letter == 'S' ? " enhanced port 0 lid 9 lmc 0" : "", ports);
    }
  };

  FabricBuilder& add(const std::string& name, char letter) {
    index_[name] = nodes_.size();
    nodes_.push_back({name, letter, nodes_.size() + 1, {}});
    return *this;
  }

  std::vector<Node> nodes_;
  std::map<std::string, std::size_t> index_;
};

/// Two spines above leaves of `hosts` hosts each, n0, n1, …, with one adapter, and `uplinks` to each spine.
inline FabricBuilder fat_tree(int leaves, int hosts, int uplinks = 1) {
  FabricBuilder fabric;
  fabric.add_switch("spine0").add_switch("spine1");
  for (int leaf = 0; leaf < leaves; ++leaf) {
    const std::string name = fmt::format("leaf{}", leaf);
    fabric.add_switch(name);
    for (int i = 0; i < 2 * uplinks; ++i)
      fabric.join(name, 33 + i, fmt::format("spine{}", i % 2), 1 + leaf * uplinks + i / 2);
    for (int i = 0; i < hosts; ++i) {
      const std::string adapter = fmt::format("n{} mlx5_0", leaf * hosts + i);
      fabric.add_adapter(adapter).join(name, 1 + i, adapter, 1);
    }
  }
  return fabric;
}

/// Two pods of two leaves of two hosts each, joined by `cables` from either of a pod's two spines to a core.
inline FabricBuilder two_pods(int cables) {
  FabricBuilder fabric;
  fabric.add_switch("core");
  int port = 1;
  for (int pod = 0; pod < 2; ++pod) {
    for (int spine = 0; spine < 2; ++spine) {
      const std::string name = fmt::format("p{}spine{}", pod, spine);
      fabric.add_switch(name);
      for (int i = 0; i < cables; ++i) fabric.join(name, 50 + i, "core", port++);
    }
    for (int leaf = 0; leaf < 2; ++leaf) {
      const std::string name = fmt::format("p{}leaf{}", pod, leaf);
      fabric.add_switch(name);
      for (int spine = 0; spine < 2; ++spine)
        fabric.join(name, 40 + spine, fmt::format("p{}spine{}", pod, spine), 1 + leaf);
      for (int host = 0; host < 2; ++host) {
        const std::string adapter = fmt::format("n{} mlx5_0", 4 * pod + 2 * leaf + host);
        fabric.add_adapter(adapter).join(name, 1 + host, adapter, 1);
      }
    }
  }
  return fabric;
}

/// Two units of 4 hosts with two adapters each, on a leaf for each rail; n7's cables are crossed.
inline FabricBuilder rails() {
  FabricBuilder fabric;
  fabric.add_switch("spine");
  for (const char* leaf : {"a0", "a1", "b0", "b1"}) fabric.add_switch(leaf);
  int port = 1;
  for (const char* leaf : {"a0", "a1", "b0", "b1"}) {
    for (int i = 0; i < 3; ++i) fabric.join(leaf, 40 + i, "spine", port++);
  }
  for (int host = 0; host < 8; ++host) {
    for (int rail = 0; rail < 2; ++rail) {
      const std::string adapter = fmt::format("n{} mlx5_{}", host, rail);
      const int leaf_rail = host == 7 ? 1 - rail : rail;
      fabric.add_adapter(adapter).join(fmt::format("{}{}", host % 2 == 0 ? 'a' : 'b', leaf_rail), 1 + host,
                                       adapter, 1);
    }
  }
  return fabric;
}

/// The rate of FabricBuilder's cables.
inline const Bandwidth kNdr = probe::openfabrics_rate("400 Gb/sec (4X NDR)", NicKind::infiniband);

inline FabricMap parsed(const std::string& text) { return parse_ibnetdiscover(text, "net.out"); }
inline FabricMap parsed(const FabricBuilder& fabric) { return parsed(fabric.text()); }

}  // namespace polyring::testing
