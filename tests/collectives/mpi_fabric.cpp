// Ranks as processes: for each run the first so many of those that mpirun has started, with communicators of
// its own, since what one run leaves behind must not meet the next one's messages.
#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <numeric>

#include "collectives/runtime/mpi/handle.hpp"
#include "collectives/runtime/mpi/world.hpp"
#include "collectives/runtime/transports/composed.hpp"
#include "collectives/runtime/transports/mpi.hpp"
#include "tests/collectives/fabric.hpp"
#include "tests/mpi_tests.hpp"

namespace polyring::testing {
namespace {

constexpr Seconds kWholeSuite{300};
// Too long for any MPI to send it before somebody receives it; what is sent at once names nobody who is late.
constexpr Bytes kShortMessage{(1 << 18) - 1};

std::unique_ptr<Transport> make_transport(const Fabric& fabric, MpiWorld& world, Seconds timeout) {
  world.set_timeout(timeout);
  const WaitRules rules = world.wait_rules();
  std::unique_ptr<Transport> far =
      make_mpi_transport(world, fabric.pieces ? MpiPieces{kShortMessage, kShortMessage} : MpiPieces{});
  if (fabric.kind == Fabric::Kind::mpi) return far;
  world.set_timeout(MpiWorld::kSetUpTimeout);
  std::unique_ptr<Transport> near = make_near(fabric, world, rules);
  world.set_timeout(timeout);
  return fabric.kind == Fabric::Kind::shared ? std::move(near)
                                             : compose(std::move(near), std::move(far), rules);
}

/// Takes what was sent and never received. MPI gives a communicator's number to a later one, and with it what
/// is still on its way.
void drain(const MpiWorld& world) {
  world.idle_barrier();  // all is sent
  for (const MPI_Comm comm : {world.handle().comm, world.handle().roll_call}) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(10);  // all has arrived
    while (std::chrono::steady_clock::now() < end) {
      int found = 0;
      MPI_Status status;
      check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &found, &status), "MPI_Iprobe");
      if (found == 0) continue;
      int bytes = 0;
      check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
      std::vector<std::byte> data(static_cast<std::size_t>(bytes));
      check_mpi(
          MPI_Recv(data.data(), bytes, MPI_BYTE, status.MPI_SOURCE, status.MPI_TAG, comm, MPI_STATUS_IGNORE),
          "MPI_Recv");
    }
  }
  world.idle_barrier();  // all is taken
}

}  // namespace

std::vector<Fabric> fabrics() {
  std::vector<Fabric> all{{Fabric::Kind::mpi}, {Fabric::Kind::mpi}, {Fabric::Kind::shared}};
  all[1].pieces = true;
  for (const Placement placement :
       {Placement::halves, Placement::all_but_one, Placement::one_and_all, Placement::in_turn}) {
    all.push_back({Fabric::Kind::composed, placement});
  }
  return all;
}

void run_over(const Fabric& fabric, int ranks, const std::function<void(Transport&)>& body, Seconds timeout) {
  const MpiWorld& everybody = all_ranks();
  ASSERT_LE(ranks, everybody.size()) << "mpirun has started too few ranks";
  std::exception_ptr failure;
  if (everybody.rank() < ranks) {
    std::vector<Rank> first(static_cast<std::size_t>(ranks));
    std::iota(first.begin(), first.end(), 0);
    MpiWorld world(everybody, first, World::Others::rest);
    const std::unique_ptr<Transport> transport = make_transport(fabric, world, timeout);
    try {
      body(*transport);
    } catch (...) {
      failure = std::current_exception();
    }
    world.set_timeout(kWholeSuite);
    drain(world);
  }
  everybody.idle_barrier();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace polyring::testing
