// Ranks as MPI processes: nonblocking point-to-point messages between host buffers.
#pragma once

#include <memory>
#include <string_view>

#include "collectives/runtime/communicator.hpp"
#include "collectives/runtime/mpi/world.hpp"
#include "collectives/runtime/transport.hpp"

namespace polyring {

/// Longer messages travel in pieces; both ends agree on them. Each piece that arrives counts as progress for
/// those who wait. Pieces also keep counts within MPI's int.
inline constexpr Bytes kMpiPiece{4 << 20};

/// The longest pieces to ranks of the same host and of others: at least 1 byte, the same on all ranks.
struct MpiPieces {
  Bytes in_host = kMpiPiece;
  Bytes between_hosts = kMpiPiece;
};

/// See Network::unasked. Without RDMA nearly the 64 KiB from where Open MPI's TCP asks; see
/// docs/performance.md.
Bytes unasked_between_hosts(bool rdma);

/// UCX without RDMA, as under MPICH over Ethernet, makes a rendezvous of whatever is longer than some tens of
/// KiB: five crossings, and each waits for a rank of either host to run, while short messages just follow one
/// another. In Open MPI's rendezvous over TCP the end of one piece is told behind the bytes of
/// all others that are on their way: a receiver would see no progress before it has them all. `version` is
/// MPI_Get_library_version()'s text.
Bytes piece_between_hosts(std::string_view version, bool rdma);

/// What a rank does that has given up, where MPI can neither end nor cancel a message of it.
enum class WhenStuck {
  end_job,  // with a sentence
  go_on,    // MPI may use the message's buffer ever after: its user must not free it
};

/// Keeps a reference to the world, and has its time limit as it is now.
std::unique_ptr<Transport> make_mpi_transport(const MpiWorld& world, MpiPieces pieces = {});

/// The same in pieces that suit the library and the network adapters of all hosts, with an MPI communicator
/// of its own: its messages meet nobody else's. Collective.
Network make_mpi_network(const MpiWorld& world);
/// The same with another way to wait, and for programs that must go on when it fails.
Network make_mpi_network(const MpiWorld& world, WaitRules rules, WhenStuck when_stuck);

/// A communicator of the world's ranks, over MPI where they share no memory. Keeps a reference to the world,
/// and has its time limit as it is now.
CommunicatorOptions over_mpi(const MpiWorld& world, TransportChoice choice = TransportChoice::automatic);
/// The same with another way to wait. With WhenStuck::go_on a communicator that has failed must not end
/// before the process: MPI may still write to its memory.
CommunicatorOptions over_mpi(const MpiWorld& world, const WaitRules& rules, WhenStuck when_stuck);

}  // namespace polyring
