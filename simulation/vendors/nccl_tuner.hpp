// NCCL's tuning model: how long it expects ring and tree to take with each protocol, by which it chooses.
//
// Numbers and formulas are those of NCCL 2.19 to 2.21, src/graph/tuning.cc, with two exceptions: between
// hosts a ring counts 2(N − 1) hops of N hosts, as in the versions before and after, and Blackwell's
// bandwidths are those of NCCL 2.30, since the older versions have none.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "collectives/schedule/schedule.hpp"

namespace polyring {

enum class NcclAlgorithm { ring, tree };
enum class NcclProtocol { ll, ll128, simple };

std::string_view to_text(NcclAlgorithm algorithm);
std::string_view to_text(NcclProtocol protocol);  // "LL", "LL128", "Simple"

inline constexpr std::string_view kNcclTuning = "NCCL, src/graph/tuning.cc";
inline constexpr std::string_view kNcclLinks = "NCCL, src/graph/topo.h";

/// What the model charges for a hop of a ring: over NVLink, from GPU to GPU over PCIe, and from GPU to GPU of
/// another host.
struct NcclHops {
  Seconds nvlink;
  Seconds pci;
  Seconds network;
};
NcclHops nccl_ring_hops(NcclProtocol protocol);
/// Once for each call of a ring.
Seconds nccl_ring_base(NcclProtocol protocol);

/// What the model knows of a cluster.
struct NcclSystem {
  int ranks = 1;
  int hosts = 1;            // an NVLink domain is one
  int channels = 1;         // rings; twice as many trees
  Bandwidth in_host;        // of all channels together, inside a host
  Bandwidth between_hosts;  // the same over the whole ring
  int capability = 60;      // compute capability of the GPUs, times ten
  bool nvlink = false;      // from each GPU of a host to the next
  bool ll128 = false;       // is enabled
  bool power = false;       // processors
  bool amd = false;
};

struct NcclEstimate {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
  Seconds base;         // once
  Seconds hop_in_host;  // along a hop
  Seconds hop_between_hosts;
  Seconds latency;        // base and all hops on the way of a byte
  double efficiency = 1;  // part of the links' bandwidth that carries payload
  Bandwidth bandwidth;    // payload by time, as algbw

  Seconds time(Bytes payload) const { return latency + payload / bandwidth; }
};

/// One for each algorithm and protocol that is enabled; a reduce-scatter and an allgather have rings alone
/// (NVLS, CollNet and PAT are left out, as for an allreduce), of half as many steps. `payload` is that of the
/// longer of a rank's two buffers. For 2 ranks or more, and no alltoall.
std::vector<NcclEstimate> nccl_estimates(const NcclSystem& system, Bytes payload,
                                         Collective collective = Collective::allreduce);

/// The one that takes least.
NcclEstimate nccl_choice(const NcclSystem& system, Bytes payload,
                         Collective collective = Collective::allreduce);

/// The chunk that a tree is pipelined with, of NCCL's buffers of 512 KiB (32 KiB of payload for LL): halved
/// while there would be too few for the depth of the tree (src/enqueue.cc).
Bytes nccl_tree_chunk(const NcclSystem& system, NcclProtocol protocol, Bytes payload);

}  // namespace polyring
