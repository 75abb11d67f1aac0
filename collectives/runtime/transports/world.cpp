#include "collectives/runtime/transports/world.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "collectives/runtime/transports/composed.hpp"
#include "collectives/runtime/transports/mpi.hpp"
#include "collectives/runtime/transports/shared.hpp"

namespace polyring {
namespace {

/// Null, with the reason, where it cannot be had.
std::unique_ptr<Transport> make_shared(const MpiWorld& world, std::string& why) {
  SharedGroup group{world.rank(), world.size(), {}, {}, world.wait_rules()};
  for (Rank rank = 0; rank < world.size(); ++rank) {
    if (world.shares_host_with(rank)) group.members.push_back(rank);
  }
  group.allgather = [&world](std::span<const std::byte> bytes) { return world.allgather(bytes); };
  return make_shared_transport(group, why);
}

}  // namespace

TransportChoice parse_transport(const std::string& text) {
  if (text == "auto") return TransportChoice::automatic;
  if (text == "shared") return TransportChoice::shared;
  if (text == "mpi") return TransportChoice::mpi;
  usage_error("unknown transport '{}'; choose from auto, shared, mpi", text);
}

WorldTransport make_world_transport(const MpiWorld& world, TransportChoice choice) {
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
  const MpiPieces pieces = suitable_pieces(world);
  if (world.nodes() > 1 && pieces.between_hosts < pieces.unasked_between_hosts)
    result.message = pieces.between_hosts;
  result.unasked = pieces.unasked_between_hosts;
  result.name = !result.transport ? "MPI" : world.nodes() > 1 ? "shared memory and MPI" : "shared memory";
  if (!result.transport) {
    result.transport = make_mpi_transport(world, pieces);
  } else if (world.nodes() > 1) {
    result.transport =
        compose(std::move(result.transport), make_mpi_transport(world, pieces), world.wait_rules());
  }
  return result;
}

}  // namespace polyring
