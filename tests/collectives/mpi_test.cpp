// Run under mpirun with any number of ranks: every algorithm over MPI and over shared memory, and what else
// needs several processes.
#include "bench/contenders/mpi.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "bench/measure/payload.hpp"
#include "collectives/runtime/executor.hpp"
#include "collectives/runtime/mpi/handle.hpp"
#include "collectives/runtime/transports/mpi.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "tests/collectives/collective_case.hpp"
#include "tests/collectives/sweep.hpp"
#include "tests/mpi_tests.hpp"

namespace polyring {
namespace {

/// Every algorithm over one transport, compared with MPI_Allreduce and with the exact result.
class AllreduceTest : public ::testing::TestWithParam<TransportChoice> {
 protected:
  void compare(const Plan& plan, Count count, ElementKind kind, ReduceOp op, bool in_place) {
    compare(transport_, plan, count, kind, op, in_place);
  }

  void compare(Transport& transport, const Plan& plan, Count count, ElementKind kind, ReduceOp op,
               bool in_place) {
    const auto bytes = bytes_of(count, kind).value;
    const Payload payload(kind, op, world_.size());
    // By turns from the library, and from anywhere, at any alignment.
    const bool library = ++cases_ % 2 == 0;
    const auto buffer = [&] {
      const Bytes size{bytes + 2};
      return library ? transport.allocate(size) : transport.scratch(size);
    };
    const Memory input = buffer();
    const Memory output = buffer();
    std::byte* const in = input.get() + (library ? 0 : 1);
    std::byte* const out = output.get() + (library ? 0 : 1);
    payload.fill(world_.rank(), in, count);
    std::memset(out, 0xff, bytes);
    std::vector<std::byte> reference(bytes + 1, std::byte{0xff});
    make_mpi_allreduce(world_, kind, op, count)->run(in, reference.data());
    if (in_place) std::memcpy(out, in, bytes);
    Executor executor(make_schedule(plan, world_.size(), count, size_of(kind)), kind, op, transport);
    executor.run(in_place ? out : in, out);
    const Count wrong = payload.wrong(out, count);
    const bool differs = std::memcmp(out, reference.data(), bytes) != 0;
    EXPECT_TRUE(wrong == 0 && !differs)
        << fmt::format("{} of {} {} {}{}: {} wrong, {} MPI_Allreduce", to_text(plan), count, to_text(kind),
                       to_text(op), in_place ? " in place" : "", wrong, differs ? "differs from" : "as");
  }

  MpiWorld& world_ = testing::all_ranks();
  Communicator communicator_{world_, over_mpi(world_, GetParam())};
  Transport& transport_ = communicator_.transport();
  int cases_ = 0;
};

TEST_P(AllreduceTest, IsRightByEveryAlgorithm) {
  for (const Algorithm& algorithm : algorithms()) {
    for (const Plan& plan : testing::plans_of(algorithm, world_.size(), 4)) {
      for (const Count count : testing::awkward_counts(world_.size())) {
        compare(plan, count, ElementKind::float32, ReduceOp::sum, count % 2 == 0);
      }
    }
    const Plan plan{std::string(algorithm.name), {world_.size()}, {}, 2, {4096}};
    for (const ElementKind kind : kElementKinds) {
      for (const ReduceOp op : kReduceOps) {
        for (const bool in_place : {false, true}) compare(plan, 5001, kind, op, in_place);
      }
    }
    // Beyond every eager limit.
    compare({std::string(algorithm.name), {world_.size()}, {}, 1, {1 << 18}}, 1 << 19, ElementKind::float32,
            ReduceOp::sum, false);
  }
}

std::string name_of(const ::testing::TestParamInfo<TransportChoice>& info) {
  return info.param == TransportChoice::network ? "mpi" : "shared";
}

/// Every other rank: both parts at the same time, each by its own transport.
TEST(MpiWorldPart, WorksBesideTheOthers) {
  MpiWorld& world = testing::all_ranks();
  std::vector<Rank> members;
  for (Rank rank = world.rank() % 2; rank < world.size(); rank += 2) members.push_back(rank);
  const std::unique_ptr<World> own = world.part(members, World::Others::work);
  EXPECT_EQ(own->size(), static_cast<int>(members.size()));
  EXPECT_EQ(members[static_cast<std::size_t>(own->rank())], world.rank());
  EXPECT_EQ(own->host(), world.host());
  EXPECT_EQ(own->sum(1), own->size());
  Communicator communicator(*own, over_mpi(*as_mpi_world(*own), TransportChoice::automatic));
  std::vector<float> sums(1000, 1);
  auto* const bytes = reinterpret_cast<std::byte*>(sums.data());
  communicator.run({.count = 1000}, bytes, bytes);
  EXPECT_EQ(sums, std::vector<float>(1000, static_cast<float>(own->size())));
  world.barrier();
}

INSTANTIATE_TEST_SUITE_P(Over, AllreduceTest,
                         ::testing::Values(TransportChoice::network, TransportChoice::shared), name_of);

using PiecesTest = AllreduceTest;

TEST_P(PiecesTest, AreReducedAsTheWhole) {
  for (const std::uint64_t piece : {1U, 7U, 1000U, 4096U}) {
    const auto transport = make_mpi_transport(world_, {Bytes{piece}, kMpiPiece});
    const Plan plan{"multi-ring", {world_.size()}, {}, 2, {16384}};
    for (const Count count : {0, 1, 1024, 5001}) {
      compare(*transport, plan, piece == 1 ? count / 16 : count, ElementKind::float32, ReduceOp::sum, false);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Over, PiecesTest, ::testing::Values(TransportChoice::network), name_of);

/// Of all ranks and of the first half of them, at once.
TEST(Communicators, WorkOverMpiSideBySide) {
  MpiWorld& world = testing::all_ranks();
  std::vector<Rank> half(static_cast<std::size_t>(world.size() + 1) / 2);
  std::iota(half.begin(), half.end(), 0);
  const bool in_half = world.rank() <= half.back();
  for (const TransportChoice choice : {TransportChoice::network, TransportChoice::automatic}) {
    Communicator all(world, over_mpi(world, choice));
    std::optional<MpiWorld> part;
    std::optional<Communicator> of_part;
    if (in_half) part.emplace(world, half, World::Others::work);
    if (in_half) of_part.emplace(*part, over_mpi(*part, choice));
    std::vector<testing::Case> cases = testing::cases_of(world);
    std::vector<testing::Case> cases_of_part;
    if (in_half) cases_of_part = testing::cases_of(*part);
    std::vector<Operation> operations;
    for (std::size_t at = 0; at < cases.size(); ++at) {
      operations.push_back(cases[at].start(all));
      if (in_half) operations.push_back(cases_of_part[at].start(*of_part));
    }
    operations.clear();
    for (const testing::Case& one : cases) EXPECT_TRUE(one.is_right()) << one.name();
    for (const testing::Case& one : cases_of_part) EXPECT_TRUE(one.is_right()) << one.name() << " of half";
  }
}

/// Each rank starts operations of two communicators over the same ranks in an order of its own.
TEST(Communicators, DoNotMixOverMpi) {
  MpiWorld& world = testing::all_ranks();
  Communicator one(world, over_mpi(world, TransportChoice::network));
  Communicator other(world, over_mpi(world, TransportChoice::network));
  std::vector<testing::Case> cases;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    cases.emplace_back(Collective::allreduce, 3000, seed, world.rank(), world.size());
  std::vector<Operation> operations(cases.size());
  for (const std::size_t turn : {std::size_t{0}, std::size_t{1}}) {
    const std::size_t first = (turn + static_cast<std::size_t>(world.rank())) % 2;
    for (std::size_t at = first; at < cases.size(); at += 2)
      operations[at] = cases[at].start(at % 2 == 0 ? one : other);
  }
  for (std::size_t at = 0; at < cases.size(); ++at) {
    operations[at].wait();
    EXPECT_TRUE(cases[at].is_right()) << cases[at].name();
  }
}

/// A program's own communicator, in an order of its own.
TEST(Communicators, AreMadeOfAnyOfMpis) {
  MpiWorld& world = testing::all_ranks();
  MPI_Comm reversed = MPI_COMM_NULL;
  ASSERT_EQ(MPI_Comm_split(MPI_COMM_WORLD, 0, -world.rank(), &reversed), MPI_SUCCESS);
  {
    const MpiWorld own(MpiWorld::Handle::of(reversed));
    EXPECT_EQ(own.rank(), world.size() - 1 - world.rank());
    EXPECT_EQ(own.host(), world.host());
    Communicator communicator(own, over_mpi(own));
    for (testing::Case& one : testing::cases_of(own)) {
      one.start(communicator).wait();
      EXPECT_TRUE(one.is_right()) << one.name();
    }
  }
  EXPECT_EQ(MPI_Comm_free(&reversed), MPI_SUCCESS);
}

/// The others wait for the last rank, which never comes: each must say so in time.
TEST(MpiTransport, SaysInTimeWhoIsMissing) {
  MpiWorld& world = testing::all_ranks();
  if (world.size() == 1) return;
  const Seconds usual = world.timeout();
  world.barrier();
  const int absent = world.size() - 1;
  if (world.rank() != absent) {
    world.set_timeout(Seconds{0.2});
    const auto impatient = make_mpi_transport(world);
    std::byte nothing{};
    impatient->receive(absent, 7, {&nothing, 1}, 0);
    std::vector<Ticket> done;
    try {
      impatient->wait(done);
      ADD_FAILURE() << "waited for a message that nobody sends, and got it";
    } catch (const Error& error) {
      const std::string name = fmt::format("rank {} ({})", absent, world.host(absent));
      const std::string_view what = error.what();
      EXPECT_EQ(error.code(), ExitCode::timeout) << "a wait without end is not a timeout";
      EXPECT_NE(what.find("for " + name), std::string_view::npos) << error.what();
      EXPECT_NE(what.find("no answer from " + name + ":"), std::string_view::npos) << error.what();
    }
    world.set_timeout(usual);
  }
  world.barrier();
}

/// More elements than an int counts, in messages that are longer than the largest piece.
TEST(Huge, PayloadsAreReducedRight) {
  MpiWorld& world = testing::all_ranks();
  constexpr Count count = (Count{1} << 31) + 5;
  if (world.broadcast(testing::available_memory() < 7 * count ? 1 : 0) != 0)
    GTEST_SKIP() << "needs 14 GB of free memory";
  const std::unique_ptr<Transport> transport = make_mpi_transport(world);
  const ElementKind kind = ElementKind::bfloat16;
  const Payload payload(kind, ReduceOp::max, world.size());
  const Memory data = transport->allocate(bytes_of(count, kind));
  const auto check = [&](auto&& allreduce) {
    payload.fill(world.rank(), data.get(), count);
    allreduce.run(data.get(), data.get());
    EXPECT_EQ(payload.wrong(data.get(), count), 0) << "more than 2^31 elements are reduced wrongly";
  };
  Executor executor(make_schedule({"multi-ring", {world.size()}, {}, 1, {}}, world.size(), count, 2), kind,
                    ReduceOp::max, *transport);
  check(executor);
  check(*make_mpi_allreduce(world, kind, ReduceOp::max, count));
}

/// In one call of MPI and in many.
TEST(World, Gathers) {
  const MpiWorld& world = testing::all_ranks();
  std::vector<std::byte> own(static_cast<std::size_t>(3 + 50 * world.rank()));
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = std::byte(static_cast<std::size_t>(world.rank()) + i);
  for (const Bytes at_once : {MpiWorld::kMostAtOnce, Bytes{64}, Bytes{1}}) {
    const auto everywhere = world.allgather(own, at_once);
    const auto on_root = world.gather(own, at_once);
    const auto is_right = [&](const std::vector<std::vector<std::byte>>& parts) {
      for (std::size_t rank = 0; rank < parts.size(); ++rank) {
        if (parts[rank].size() != 3 + 50 * rank) return false;
        for (std::size_t i = 0; i < parts[rank].size(); ++i) {
          if (parts[rank][i] != std::byte(rank + i)) return false;
        }
      }
      return true;
    };
    const auto ranks = static_cast<std::size_t>(world.size());
    EXPECT_TRUE(everywhere.size() == ranks && is_right(everywhere)) << "allgather() is wrong";
    EXPECT_TRUE(on_root.size() == (world.rank() == 0 ? ranks : 0) && is_right(on_root))
        << "gather() is wrong";
  }
}

TEST(World, KnowsItsRanks) {
  const MpiWorld& world = testing::all_ranks();
  EXPECT_TRUE(world.nodes() == 1 && world.ranks_per_node() == world.size())
      << "one host is taken for several";
  EXPECT_EQ(world.max(world.rank()), world.size() - 1) << "max() is wrong";
  EXPECT_EQ(world.sum(world.rank()), Count{world.size()} * (world.size() - 1) / 2) << "sum() is wrong";
  EXPECT_EQ(world.broadcast(world.rank() + 5), 5) << "broadcast() is wrong";
}

}  // namespace
}  // namespace polyring
