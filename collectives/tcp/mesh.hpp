// The connections of one rank to those of other hosts: who connects to whom, and who they are.
//
// Every rank listens and says where, over the allgather. Of two ranks the higher connects to the lower. Both
// greet with the tokens of both: a stranger knows neither, and an address that leads to another host's rank,
// as private ones can, is noticed.
#pragma once

#include <asio.hpp>
#include <string>
#include <vector>

#include "collectives/transports/tcp.hpp"

namespace polyring {

struct TcpPeer {
  Rank rank = 0;
  std::string name;  // "rank 3 (node1)"
  asio::ip::tcp::socket socket;
};

/// Collective over the world. Throws Error(ExitCode::not_available) on all ranks when one of them has not met
/// all of its peers by the group's time limit for it, with the reason.
std::vector<TcpPeer> connect_mesh(asio::io_context& io, const TcpGroup& group);

}  // namespace polyring
