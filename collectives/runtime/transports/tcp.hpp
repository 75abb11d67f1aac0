// Ranks that exchange messages over TCP connections of their own, without MPI.
//
// Two ranks connect when they first have something for each other. Short messages are sent at once, and wait
// at the receiver if nobody has asked for them yet. For a longer one the sender asks first, and sends it when
// the receiver has a place for it.
#pragma once

#include <memory>
#include <string>

#include "collectives/runtime/bootstrap.hpp"
#include "collectives/runtime/transport.hpp"

namespace polyring {

struct TcpOptions {
  std::string interface;                   // by which the others reach this rank; empty: see choose_address()
  bool several_hosts = true;               // that the ranks are on
  int connections = 2;                     // to each other rank; messages of one tag use the same one
  Bytes unasked{std::uint64_t{64} << 10};  // the longest message that is sent without asking
};

/// Collective. Throws Error(ExitCode::not_available) on all ranks where one has no such interface. The
/// transport's operations throw Error(ExitCode::mpi) that names the rank whose connection is lost, and what
/// check_length() does. A rank that fails tells those to whom
/// it is connected why: what they wait for fails with its Error, and so on, so that all name the first cause.
std::unique_ptr<Transport> make_tcp_transport(const Bootstrap& bootstrap, const TcpOptions& options,
                                              WaitRules rules);

}  // namespace polyring
