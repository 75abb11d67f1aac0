#include "collectives/transports/world.hpp"

#include <fmt/format.h>

#include "collectives/net/address.hpp"
#include "collectives/transports/composed.hpp"
#include "collectives/transports/mpi.hpp"
#include "collectives/transports/shared.hpp"
#include "collectives/transports/tcp.hpp"
#include "topology/error.hpp"

namespace polyring {
namespace {

Allgather allgather_of(const MpiWorld& world) {
  return [&world](std::span<const std::byte> bytes) { return world.allgather(bytes); };
}

std::vector<Rank> ranks_of_this_host(const MpiWorld& world) {
  std::vector<Rank> ranks;
  for (Rank rank = 0; rank < world.size(); ++rank) {
    if (world.host(rank) == world.host()) ranks.push_back(rank);
  }
  return ranks;
}

/// Null, with the reason, where it cannot be had.
std::unique_ptr<Transport> make_shared(const MpiWorld& world, std::string& why) {
  return make_shared_transport(
      {world.rank(), world.size(), ranks_of_this_host(world), allgather_of(world), world.wait_rules()}, why);
}

/// With all ranks but the members.
std::unique_ptr<Transport> make_tcp(const MpiWorld& world, const std::vector<Rank>& members,
                                    const std::string& interface) {
  const std::string address =
      choose_address(network_interfaces(), interface, default_interface(), world.nodes() > 1);
  return make_tcp_transport(
      {world.rank(), world.size(), members, address, world.host(), allgather_of(world), world.wait_rules()});
}

}  // namespace

TransportChoice parse_transport(const std::string& text) {
  if (text == "auto") return TransportChoice::automatic;
  if (text == "shared") return TransportChoice::shared;
  if (text == "mpi") return TransportChoice::mpi;
  if (text == "tcp") return TransportChoice::tcp;
  usage_error("unknown transport '{}'; choose from auto, shared, mpi, tcp", text);
}

WorldTransport make_world_transport(const MpiWorld& world, TransportChoice choice,
                                    const std::string& tcp_interface) {
  WorldTransport result;
  if (choice != TransportChoice::mpi && world.nodes() < world.size()) {
    result.transport = make_shared(world, result.fallback);
  } else if (choice == TransportChoice::shared && world.size() > 1) {
    result.fallback = "no two ranks are on one host";
  }
  if (choice == TransportChoice::shared && !result.fallback.empty()) {
    throw Error(ExitCode::not_available,
                fmt::format("shared memory cannot be used: {}; try --transport mpi", result.fallback));
  }
  if (result.transport && world.nodes() == 1) {
    result.name = "shared memory";
    return result;
  }
  const bool tcp = choice == TransportChoice::tcp;
  const bool near = result.transport != nullptr;
  std::unique_ptr<Transport> far =
      tcp ? make_tcp(world, near ? ranks_of_this_host(world) : std::vector{world.rank()}, tcp_interface)
          : make_mpi_transport(world);
  result.name = fmt::format("{}{}", near ? "shared memory and " : "", tcp ? "TCP" : "MPI");
  result.transport =
      near ? compose(std::move(result.transport), std::move(far), world.wait_rules()) : std::move(far);
  return result;
}

}  // namespace polyring
