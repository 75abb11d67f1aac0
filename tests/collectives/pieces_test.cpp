// Run under mpirun with 4 ranks, which this program takes for two hosts, and their MPI for MPICH on UCX: how
// long the pieces are in which messages go, and what is said when they cannot.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <cstring>
#include <map>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "collectives/runtime/mpi/handle.hpp"
#include "collectives/runtime/net/rdma.hpp"
#include "collectives/runtime/transports/mpi.hpp"
#include "tests/mpi_tests.hpp"

namespace {

constexpr const char* kUcx = "MPICH Version:\t4.0.2\nMPICH Device:\tch4:ucx\n";
std::map<int, std::vector<int>> sent;  // the lengths of what went to each rank
enum class Fault { none, when_sent, when_done } fault = Fault::none;

}  // namespace

// In place of the C library's. MPI itself asks while it begins, and is told the truth.
extern "C" int gethostname(char* name, std::size_t size) noexcept {
  int running = 0;
  PMPI_Initialized(&running);
  utsname own{};
  uname(&own);
  int rank = 0;
  if (running != 0) PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::strncpy(name, running == 0 ? own.nodename : rank < 2 ? "near" : "far", size);
  return 0;
}

// In place of the library's own, by MPI's profiling interface.

int MPI_Get_library_version(char* version, int* length) {
  std::strcpy(version, kUcx);
  *length = static_cast<int>(std::strlen(version));
  return MPI_SUCCESS;
}

int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  if (fault == Fault::when_sent) return MPI_ERR_OTHER;
  sent[to].push_back(count);
  return PMPI_Isend(data, count, type, to, tag, comm, request);
}

int MPI_Testsome(int in, MPI_Request* requests, int* number, int* completed, MPI_Status* statuses) {
  const int result = PMPI_Testsome(in, requests, number, completed, statuses);
  if (fault != Fault::when_done || *number < 1) return result;
  for (int i = 0; i < *number; ++i) statuses[i].MPI_ERROR = i == 0 ? MPI_ERR_OTHER : MPI_SUCCESS;
  return MPI_ERR_IN_STATUS;
}

namespace polyring {
namespace {

constexpr std::size_t kBytes = 40000;

const MpiWorld& world() { return testing::all_ranks(); }

/// To all others; what arrives must be what was sent.
void everybody_sends(Transport& transport) {
  const auto byte = [](std::size_t at, Rank from) {
    return static_cast<std::byte>(at * 7 + at / 256 + 31U * static_cast<unsigned>(from));
  };
  std::vector<std::byte> own(kBytes);
  for (std::size_t at = 0; at < kBytes; ++at) own[at] = byte(at, world().rank());
  std::vector<std::vector<std::byte>> others(static_cast<std::size_t>(world().size()),
                                             std::vector<std::byte>(kBytes));
  sent.clear();
  std::size_t open = 0;
  for (Rank peer = 0; peer < world().size(); ++peer) {
    if (peer == world().rank()) continue;
    transport.receive(peer, 3, others[static_cast<std::size_t>(peer)], open++);
    transport.send(peer, 3, own, open++);
  }
  std::vector<Ticket> done;
  while (open > 0) {
    done.clear();
    transport.wait(done);
    open -= done.size();
  }
  for (Rank peer = 0; peer < world().size(); ++peer) {
    if (peer == world().rank()) continue;
    const auto& got = others[static_cast<std::size_t>(peer)];
    std::size_t at = 0;
    while (at < kBytes && got[at] == byte(at, peer)) ++at;
    EXPECT_EQ(at, kBytes) << fmt::format("byte {} from rank {} is another", at, peer);
  }
}

void expect_pieces(const std::vector<int>& in_host, const std::vector<int>& between_hosts) {
  for (Rank peer = 0; peer < world().size(); ++peer) {
    if (peer == world().rank()) continue;
    const bool near = (peer < 2) == (world().rank() < 2);
    EXPECT_TRUE(sent[peer] == (near ? in_host : between_hosts))
        << fmt::format("{} messages to rank {}, of {} bytes first", sent[peer].size(), peer,
                       sent[peer].empty() ? 0 : sent[peer].front());
  }
}

template <typename Action>
void expect_error(Action action, const std::string& beginning) {
  std::string said = "nothing";
  try {
    action();
  } catch (const Error& error) {
    said = error.code() == ExitCode::mpi ? error.what() : "another exit code";
  }
  EXPECT_TRUE(said.starts_with(beginning)) << fmt::format("'{}' does not begin with '{}'", said, beginning);
}

TEST(Pieces, DependOnLibraryAndNetwork) {
  EXPECT_EQ(piece_between_hosts(kUcx, false), Bytes{16384})
      << "UCX over Ethernet gets what needs a rendezvous";
  EXPECT_EQ(piece_between_hosts(kUcx, true), kMpiPiece) << "RDMA gets short messages";
  EXPECT_EQ(piece_between_hosts("MPICH Device:\tch4:ofi\n", false), kMpiPiece)
      << "libfabric gets short messages";
  constexpr std::string_view kOpenMpi = "Open MPI v4.1.4, package: Debian OpenMPI";
  EXPECT_EQ(piece_between_hosts(kOpenMpi, false), unasked_between_hosts(false))
      << "Open MPI asks before it sends a piece over TCP";
  EXPECT_EQ(piece_between_hosts(kOpenMpi, true), kMpiPiece) << "RDMA gets short messages of Open MPI's";
  EXPECT_LE(kMpiPiece, Bytes{4 << 20}) << "there is no progress within a long message";
  EXPECT_TRUE(unasked_between_hosts(false) < Bytes{65536}) << "Open MPI asks before it sends over TCP";
  EXPECT_EQ(unasked_between_hosts(true), Bytes{}) << "RDMA gets short chunks";
}

TEST(Pieces, GoWhereTheyBelong) {
  everybody_sends(*make_mpi_transport(world(), {Bytes{39999}, Bytes{15000}}));
  expect_pieces({39999, 1}, {15000, 15000, 10000});
  everybody_sends(*make_mpi_transport(world(), {Bytes{30000}, Bytes{40000}}));
  expect_pieces({30000, 10000}, {40000});
}

TEST(Pieces, AreChosenForTheWorld) {
  const Network chosen = make_mpi_network(world());
  everybody_sends(*chosen.transport);
  const bool rdma = world().sum(has_rdma_device() ? 1 : 0) > 0;
  EXPECT_TRUE(chosen.message == (rdma ? Bytes{0} : Bytes{16384})) << "it is not said how long messages are";
  expect_pieces({40000}, rdma ? std::vector<int>{40000} : std::vector<int>{16384, 16384, 7232});
}

TEST(Pieces, NameTheirPeerWhenTheyFail) {
  const Rank next = (world().rank() + 1) % world().size();
  const Rank before = (world().rank() + world().size() - 1) % world().size();
  const auto name = [&](Rank peer) { return fmt::format("rank {} ({})", peer, world().host(peer)); };
  std::vector<std::byte> data(kBytes);
  fault = Fault::when_sent;
  const auto transport = make_mpi_transport(world());
  expect_error([&] { transport->send(next, 4, data, 0); }, "MPI_Isend to " + name(next) + " failed: ");
  fault = Fault::when_done;
  const auto other = make_mpi_transport(world());
  other->receive(before, 5, data, 1);
  check_mpi(PMPI_Send(data.data(), static_cast<int>(kBytes), MPI_BYTE, next, 5, world().handle().comm),
            "PMPI_Send");
  std::vector<Ticket> done;
  expect_error([&] { other->wait(done); }, "a message from " + name(before) + " failed: ");
  fault = Fault::none;
}

}  // namespace
}  // namespace polyring
