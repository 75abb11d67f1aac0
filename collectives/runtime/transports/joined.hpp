// The transport for all ranks of a group: shared memory inside hosts, and a network between them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "collectives/runtime/bootstrap.hpp"
#include "collectives/runtime/transport.hpp"
#include "topology/rank_hosts.hpp"

namespace polyring {

enum class TransportChoice {
  automatic,  // shared memory where it can be had
  shared,     // it must be had
  network,    // the network for everything
};

/// What carries messages between ranks that share no memory.
struct Network {
  std::unique_ptr<Transport> transport;
  std::string name;  // "MPI", "TCP", "TCP by eth0"; plans are tuned for each by itself
  Bytes message{};   // the longest between hosts where it is short; 0 otherwise
  /// About the longest message to another host that is sent without asking the receiver first, where that
  /// takes long; 0: any. Chunks should be cut so that none is longer.
  Bytes unasked{};
};

/// Collective.
using MakeNetwork = std::function<Network()>;

struct JoinedTransport {
  std::unique_ptr<Transport> transport;
  std::string name;      // "shared memory", "MPI", "shared memory and TCP"
  Bytes message{};       // as the network's
  Bytes unasked{};       // as the network's
  std::string fallback;  // why shared memory is not used although it was wanted; empty otherwise
};

/// Collective. Has the ranks' data in the memory of a device, by a transport over this one; changes its name.
using MoveToDevice =
    std::function<void(JoinedTransport& joined, const RankHosts& hosts, const WaitRules& rules)>;

/// Collective. `hosts` are the group's. Throws Error(ExitCode::not_available) where shared memory must be had
/// and cannot.
JoinedTransport join(const Bootstrap& bootstrap, const RankHosts& hosts, TransportChoice choice,
                     const MakeNetwork& make_network, const WaitRules& rules);

}  // namespace polyring
