// Ranks as processes that are joined by TCP, one connection for each pair (or as threads, for tests).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "collectives/allgather.hpp"
#include "collectives/transport.hpp"

namespace polyring {

struct TcpGroup {
  Rank rank = 0;
  int size = 1;               // of the world
  std::vector<Rank> members;  // with whom nothing is exchanged: `rank`, and others of this host
  std::string address;        // IPv4, of this host, where others reach it
  std::string host;           // its name, for messages
  Allgather allgather;
  WaitRules rules;
  Seconds limit{20};  // until all are connected
};

/// Collective over the world: connects this rank with all but the members. Throws
/// Error(ExitCode::not_available) on all ranks alike when one of them is not reached. Later, when a peer has
/// gone with which messages are in flight, polling throws Error(ExitCode::timeout) that names it.
std::unique_ptr<Transport> make_tcp_transport(const TcpGroup& group);

}  // namespace polyring
