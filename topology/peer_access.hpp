// Peer access, as a model assumes it: which ranks of a host can read and write each other's memory directly.
#pragma once

#include <string>
#include <vector>

#include "topology/cluster.hpp"

namespace polyring {

/// GPUs that NVLink or xGMI joins, directly or through an NVSwitch, and GPUs under one PCIe host bridge;
/// never across sockets, where CUDA's peer access is missing or goes through a bus that both sockets need.
/// Processes share the memory of their host. In an NVLink domain CUDA maps the memory of other hosts' GPUs,
/// too (fabric handles and the IMEX service, as NCCL uses them: src/mnnvl.cc).
class PeerAccess {
 public:
  explicit PeerAccess(const Cluster& cluster);

  /// Whether two ranks reach each other's memory; it holds both ways. Between hosts only in an NVLink domain.
  bool operator()(int rank, int other) const;

  /// For people, of the first host: "all ranks of a host", "0-1, 2-3", or "no ranks". Ranks in a range all
  /// reach each other; where these overlap, pairs are listed.
  std::string text() const;

 private:
  /// Hosts of one group.
  struct Hosts {
    int first_rank = 0;
    int first_host = 0;
    int ranks = 0;              // of a host
    std::vector<bool> reaches;  // [from * ranks + to]

    bool pair(int from, int to) const;
  };
  const Hosts& hosts_of(int rank) const;

  std::vector<Hosts> groups_;
  int hosts_per_domain_ = 1;
};

}  // namespace polyring
