// Communicators: several operations at once, in any order, and what holds when one fails. Ranks are threads,
// joined by shared memory or by TCP.
#include "collectives/runtime/communicator.hpp"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "base/index.hpp"
#include "collectives/runtime/bootstraps/threads.hpp"
#include "collectives/runtime/transports/threads.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "tests/collectives/collective_case.hpp"
#include "tests/collectives/forwarding_transport.hpp"

namespace polyring {
namespace {

using ::testing::AnyOf;
using testing::Case;
using testing::cases_of;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::order_of;

/// The ranks of a test, and what joins them.
struct Group {
  int ranks;
  TransportChoice transport;
};

void PrintTo(const Group& group, std::ostream* out) {
  *out << group.ranks << (group.transport == TransportChoice::network ? " over TCP" : " in shared memory");
}

CommunicatorOptions options_of(const Group& group, Seconds timeout = {30}) {
  CommunicatorOptions options;
  options.timeout = timeout;
  options.transport = group.transport;
  options.interface = "lo";
  return options;
}

/// Each rank on a thread of its own. A rank's bootstrap lives until all are done or have failed.
void run_group(int ranks, const std::function<void(const Bootstrap&)>& body) {
  ThreadTeam team(ranks);
  run_ranks(ranks, [&](ThreadTransport& thread) {
    const ThreadBootstrap bootstrap(team, thread.rank());
    try {
      body(bootstrap);
    } catch (const std::exception& error) {
      team.abort(error.what());
      throw;
    }
    bootstrap.barrier();
  });
}

class Communicators : public ::testing::TestWithParam<Group> {};

INSTANTIATE_TEST_SUITE_P(
    Groups, Communicators,
    ::testing::Values(Group{1, TransportChoice::automatic}, Group{2, TransportChoice::shared},
                      Group{3, TransportChoice::network}, Group{4, TransportChoice::automatic},
                      Group{5, TransportChoice::network}),
    [](const auto& group) {
      return fmt::format("{}{}", group.param.transport == TransportChoice::network ? "tcp" : "shared",
                         group.param.ranks);
    });

TEST_P(Communicators, HaveManyOperationsInFlightThatRanksAwaitInOrdersOfTheirOwn) {
  run_group(GetParam().ranks, [](const Bootstrap& bootstrap) {
    Communicator communicator(bootstrap, options_of(GetParam()));
    for (int round = 0; round < 3; ++round) {
      std::vector<Case> cases = cases_of(bootstrap);
      std::vector<Operation> operations;
      for (Case& one : cases) operations.push_back(one.start(communicator));
      for (const std::size_t at : order_of(cases.size(), bootstrap.rank())) {
        operations[at].wait();
        EXPECT_TRUE(cases[at].is_right()) << cases[at].name();
      }
    }
  });
}

TEST_P(Communicators, GoOnWheneverOneIsTested) {
  run_group(GetParam().ranks, [](const Bootstrap& bootstrap) {
    Communicator communicator(bootstrap, options_of(GetParam()));
    std::vector<Case> cases = cases_of(bootstrap);
    std::vector<Operation> operations;
    for (Case& one : cases) operations.push_back(one.start(communicator));
    // Only the last is asked: the others get there on the way.
    while (!operations.back().test()) std::this_thread::yield();
    for (std::size_t at = 0; at < cases.size(); ++at) {
      while (!operations[at].test()) std::this_thread::yield();
      EXPECT_TRUE(operations[at].test()) << "it stays over";
      EXPECT_TRUE(cases[at].is_right()) << cases[at].name();
    }
  });
}

TEST_P(Communicators, DoTheSameSeveralTimesAtOnce) {
  run_group(GetParam().ranks, [](const Bootstrap& bootstrap) {
    Communicator communicator(bootstrap, options_of(GetParam()));
    std::vector<Case> cases;
    for (std::uint64_t seed = 0; seed < 100; ++seed)
      cases.emplace_back(Collective::allreduce, 500, seed, bootstrap.rank(), bootstrap.size());
    std::vector<Operation> operations;
    for (Case& one : cases) operations.push_back(one.start(communicator));
    operations.clear();  // waits
    for (const Case& one : cases) EXPECT_TRUE(one.is_right()) << one.name();
  });
}

TEST_P(Communicators, DoNotMixWithOthersOfTheSameRanks) {
  run_group(GetParam().ranks, [](const Bootstrap& bootstrap) {
    Communicator one(bootstrap, options_of(GetParam()));
    Communicator other(bootstrap, options_of(GetParam()));
    std::vector<Case> cases = cases_of(bootstrap);
    std::vector<Operation> operations(cases.size());
    // Ranks agree on the order within each of them alone.
    const auto start_half = [&](std::size_t first) {
      for (std::size_t at = first; at < cases.size(); at += 2)
        operations[at] = cases[at].start(at % 2 == 0 ? one : other);
    };
    const std::size_t first = index(bootstrap.rank()) % 2;
    start_half(first);
    start_half(1 - first);
    for (std::size_t at = 0; at < cases.size(); ++at) {
      operations[at].wait();
      EXPECT_TRUE(cases[at].is_right()) << cases[at].name();
    }
  });
}

/// Other plans than the communicator would choose, and beside operations that it has planned itself.
TEST_P(Communicators, DoAgainWhatWasPreparedByAPlan) {
  run_group(GetParam().ranks, [](const Bootstrap& bootstrap) {
    Communicator communicator(bootstrap, options_of(GetParam()));
    for (const Collective collective :
         {Collective::allreduce, Collective::reduce_scatter, Collective::allgather, Collective::alltoall}) {
      for (const std::string_view algorithm : algorithm_names(collective)) {
        const std::string name(algorithm);
        const Case first(collective, 1000, 1, bootstrap.rank(), bootstrap.size());
        const Plan plan = RulePlanner().choose(communicator.problem(name, first.what()), {}).plan;
        PersistentCollective prepared = communicator.prepare(first.what(), plan);
        EXPECT_EQ(prepared.algorithm(), name);
        for (std::uint64_t seed = 0; seed < 3; ++seed) {
          Case persistent(collective, 1000, seed, bootstrap.rank(), bootstrap.size());
          Case other(collective, 1000, 10 + seed, bootstrap.rank(), bootstrap.size());
          Operation beside = other.start(communicator);
          Operation again = prepared.start(persistent.input(), persistent.output());
          again.wait();
          beside.wait();
          EXPECT_TRUE(persistent.is_right()) << persistent.name() << " by " << name;
          EXPECT_TRUE(other.is_right()) << other.name() << " beside " << name;
        }
      }
    }
  });
}

/// It may end while its run is in flight, and refuses a second one.
TEST_P(Communicators, KeepWhatARunOfAPreparedCollectiveNeeds) {
  run_group(GetParam().ranks, [](const Bootstrap& bootstrap) {
    Communicator communicator(bootstrap, options_of(GetParam()));
    Case one(Collective::allreduce, 100'000, 1, bootstrap.rank(), bootstrap.size());
    Case two(Collective::allreduce, 100'000, 2, bootstrap.rank(), bootstrap.size());
    Operation operation;
    {
      PersistentCollective prepared = communicator.prepare(one.what(), communicator.plan(one.what()).plan);
      PersistentCollective moved = std::move(prepared);
      operation = moved.start(one.input(), one.output());
      // A rank that all others have waited for may be done at once.
      if (!operation.test()) {
        EXPECT_THROW(moved.start(two.input(), two.output()), Error);
      }
      operation.wait();
      operation = moved.start(two.input(), two.output());
    }
    EXPECT_TRUE(one.is_right());
    EXPECT_TRUE(two.is_right()) << "it ended before its run";
    operation.wait();
    EXPECT_FALSE(communicator.failure());
  });
}

TEST_P(Communicators, AreAsBeforeWhenAPlanIsNotForTheirRanks) {
  run_group(GetParam().ranks, [](const Bootstrap& bootstrap) {
    Communicator communicator(bootstrap, options_of(GetParam()));
    const Plan other{"multi-ring", {bootstrap.size() + 1}, {"ring"}, 1};
    EXPECT_THROW(communicator.prepare({.count = 100}, other), Error);
    EXPECT_FALSE(communicator.failure());
  });
}

TEST_P(Communicators, WorkInMemoryOfTheirOwnAndInPlace) {
  run_group(GetParam().ranks, [](const Bootstrap& bootstrap) {
    Communicator communicator(bootstrap, options_of(GetParam()));
    constexpr Count kCount = 10'000;
    const Memory memory = communicator.allocate(bytes_of(kCount, ElementKind::float32));
    auto* const values = reinterpret_cast<float*>(memory.get());
    std::fill_n(values, kCount, static_cast<float>(bootstrap.rank() + 1));
    communicator.run({.count = kCount}, memory.get(), memory.get());
    const auto sum = static_cast<float>(bootstrap.size() * (bootstrap.size() + 1) / 2);
    EXPECT_THAT(std::vector<float>(values, values + kCount), Each(sum));
  });
}

TEST_P(Communicators, AreAsBeforeWhenTheyAreAskedForWhatCannotBe) {
  run_group(GetParam().ranks, [](const Bootstrap& bootstrap) {
    Communicator communicator(bootstrap, options_of(GetParam()));
    std::vector<std::byte> data(2000);
    const auto refused = [&](const CollectiveOf& what, std::byte* output) {
      try {
        communicator.start(what, data.data(), output);
      } catch (const Error& error) {
        return error.code() == ExitCode::usage;
      }
      return false;
    };
    EXPECT_TRUE(refused({.count = -1}, data.data()));
    EXPECT_TRUE(refused({.count = 100}, data.data() + 4));
    EXPECT_TRUE(refused({.count = 100}, data.data() + 396));
    if (bootstrap.size() > 1) {
      const Count uneven = bootstrap.size() + 1;
      EXPECT_TRUE(refused({.collective = Collective::allgather, .count = uneven}, data.data() + 500));
      const Count even = 20 * bootstrap.size();
      // It begins before the longer and reaches into it, or the other way round.
      EXPECT_TRUE(refused({.collective = Collective::allgather, .count = even}, data.data() + 40));
      EXPECT_TRUE(refused({.collective = Collective::reduce_scatter, .count = even},
                          data.data() + 80 * bootstrap.size() - 40));
      EXPECT_TRUE(refused({.collective = Collective::alltoall, .count = bootstrap.size()}, data.data()));
    }
    EXPECT_FALSE(communicator.failure());
    Case after(Collective::allreduce, 100, 1, bootstrap.rank(), bootstrap.size());
    after.start(communicator).wait();
    EXPECT_TRUE(after.is_right());
  });
}

/// Two parts of one array, either of them first.
TEST_P(Communicators, TakeBuffersThatTouch) {
  run_group(GetParam().ranks, [](const Bootstrap& bootstrap) {
    Communicator communicator(bootstrap, options_of(GetParam()));
    const int ranks = bootstrap.size();
    for (const Collective collective :
         {Collective::allreduce, Collective::reduce_scatter, Collective::allgather, Collective::alltoall}) {
      const CollectiveOf what{.collective = collective, .count = 20 * ranks};
      const Count in = input_count(collective, ranks, what.count);
      const Count out = output_count(collective, ranks, what.count);
      for (const bool input_first : {true, false}) {
        std::vector<float> data(static_cast<std::size_t>(in + out), 1.0F);
        float* const input = data.data() + (input_first ? 0 : out);
        float* const output = data.data() + (input_first ? in : 0);
        communicator.run(what, reinterpret_cast<const std::byte*>(input),
                         reinterpret_cast<std::byte*>(output));
        const float expected = reduces(collective) ? static_cast<float>(ranks) : 1.0F;
        EXPECT_THAT(std::vector<float>(output, output + out), Each(expected)) << to_text(collective);
        EXPECT_THAT(std::vector<float>(input, input + in), Each(1.0F)) << to_text(collective);
      }
    }
  });
}

/// One rank is there when the communicator is made, and not afterwards.
void one_is_missing(const Group& group, bool leaves) {
  run_group(group.ranks, [&](const Bootstrap& bootstrap) {
    auto communicator = std::make_unique<Communicator>(bootstrap, options_of(group, Seconds{2}));
    Case before(Collective::allreduce, 10, 1, bootstrap.rank(), bootstrap.size());
    Operation completed = before.start(*communicator);
    completed.wait();
    if (bootstrap.rank() == group.ranks - 1) {
      if (leaves) communicator.reset();
      return bootstrap.barrier();
    }
    auto data = std::make_unique<std::vector<std::byte>>(std::size_t{4} << 20);
    std::vector<Operation> operations;
    // Where a rank has left, that may show at once.
    for (const CollectiveOf& what : {CollectiveOf{.count = 1000}, CollectiveOf{.count = 1 << 18}}) {
      if (leaves && communicator->failure()) break;
      try {
        operations.push_back(communicator->start(what, data->data(), data->data()));
      } catch (const Error&) {
        EXPECT_TRUE(leaves);
      }
    }
    for (Operation& operation : operations) {
      try {
        operation.wait();
        ADD_FAILURE() << "rank " << bootstrap.rank() << " did not need the rank that is missing";
      } catch (const Error& error) {
        EXPECT_THAT(error.code(), AnyOf(ExitCode::timeout, ExitCode::mpi));
        EXPECT_THAT(std::string(error.what()), HasSubstr("rank "));
      }
    }
    // Now all buffers are this rank's again.
    data.reset();
    ASSERT_TRUE(communicator->failure());
    EXPECT_THROW(before.start(*communicator), Error);
    completed.wait();  // was over before
    bootstrap.barrier();
  });
}

TEST_P(Communicators, FailWhenARankIsMissing) {
  if (GetParam().ranks > 1) one_is_missing(GetParam(), false);
}

TEST_P(Communicators, FailWhenARankHasLeft) {
  // In shared memory a rank that leaves waits until the others have taken what it has for them.
  if (GetParam().transport == TransportChoice::network) one_is_missing(GetParam(), true);
}

/// A rank fails and does away with all it had while the others are still at it.
TEST_P(Communicators, OutliveARankThatFails) {
  const int ranks = GetParam().ranks;
  if (ranks == 1) return;
  ThreadTeam team(ranks);
  EXPECT_THROW(run_ranks(ranks,
                         [&](ThreadTransport& thread) {
                           const ThreadBootstrap bootstrap(team, thread.rank());
                           Communicator communicator(bootstrap, options_of(GetParam(), Seconds{2}));
                           std::vector<Case> cases = testing::cases_of(bootstrap);
                           std::vector<Operation> operations;
                           for (Case& one : cases) operations.push_back(one.start(communicator));
                           if (thread.rank() == 1) throw Error(ExitCode::internal, "out of luck");
                           for (Operation& operation : operations) operation.wait();
                         }),
               Error);
}

/// However long a rank has done something else: what counts is how long it waits.
/// Bytes of this process's mappings of segments.
std::uint64_t segment_bytes() {
  std::ifstream maps("/proc/self/maps");
  std::uint64_t bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:polyring") == std::string::npos) continue;
    std::size_t dash = 0;
    const std::uint64_t begin = std::stoull(line, &dash, 16);
    bytes += std::stoull(line.substr(dash + 1), nullptr, 16) - begin;
  }
  return bytes;
}

/// Else each operation would wait for new pages, until there are many copies.
TEST(Communicator, UsesTheSameCopiesAgainSoon) {
  constexpr Count kCount = 2 * (64 << 10) / 4;  // a block fits a copy
  std::uint64_t at_first = 0;
  run_group(2, [&](const Bootstrap& bootstrap) {
    Communicator communicator(bootstrap, options_of({2, TransportChoice::shared}));
    const std::vector<float> input(kCount, 1);
    std::vector<float> output(kCount / 2);
    for (int i = 0; i < 40; ++i) {
      communicator.run({Collective::reduce_scatter, kCount}, reinterpret_cast<const std::byte*>(input.data()),
                       reinterpret_cast<std::byte*>(output.data()));
      bootstrap.barrier();  // the other has read its copy
      if (i == 5 && bootstrap.rank() == 0) at_first = segment_bytes();
      bootstrap.barrier();
    }
    if (bootstrap.rank() == 0) {
      EXPECT_GT(at_first, 0u);
      EXPECT_LT(segment_bytes(), at_first + (1 << 20)) << "both ranks' views of 8 copies";
    }
    bootstrap.barrier();
  });
}

TEST(Operation, IsGivenTheWholeTimeLimitWheneverItIsTested) {
  run_group(2, [](const Bootstrap& bootstrap) {
    Communicator communicator(bootstrap, options_of({2, TransportChoice::automatic}, Seconds{3}));
    const auto compute = [](double seconds) {
      std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
    };
    for (int round = 0; round < 2; ++round) {
      Case one(Collective::allreduce, 100, 1, bootstrap.rank(), 2);
      if (bootstrap.rank() == 1) compute(0.3);
      Operation operation = one.start(communicator);
      operation.test();  // finds nothing new on rank 0
      operation.wait();
      EXPECT_TRUE(one.is_right());
      if (round == 0) compute(4);
    }
  });
}

/// It may be tested for longer than the limit, as long as something goes on.
TEST(Operation, DoesNotFailWhileThereIsProgress) {
  run_group(2, [](const Bootstrap& bootstrap) {
    constexpr double kLimit = 3;
    constexpr std::uint64_t kOperations = 6;
    Communicator communicator(bootstrap, options_of({2, TransportChoice::automatic}, Seconds{kLimit}));
    std::vector<Case> cases;
    std::vector<Operation> operations;
    for (std::uint64_t seed = 0; seed < kOperations; ++seed)
      cases.emplace_back(Collective::allreduce, 100, seed, bootstrap.rank(), 2);
    for (Case& one : cases) {
      if (bootstrap.rank() == 1) std::this_thread::sleep_for(std::chrono::duration<double>(kLimit / 4));
      operations.push_back(one.start(communicator));
      if (bootstrap.rank() == 1) operations.back().wait();
    }
    while (!operations.back().test()) std::this_thread::yield();
    for (std::size_t at = 0; at < cases.size(); ++at) {
      operations[at].wait();
      EXPECT_TRUE(cases[at].is_right());
    }
  });
}

TEST(Operation, KeepsTheTimeLimitWhenItIsTested) {
  run_group(2, [](const Bootstrap& bootstrap) {
    auto communicator =
        std::make_unique<Communicator>(bootstrap, options_of({2, TransportChoice::automatic}, Seconds{1}));
    Case one(Collective::allreduce, 100, 1, bootstrap.rank(), 2);
    Operation operation;
    if (bootstrap.rank() == 0) {
      operation = one.start(*communicator);
      EXPECT_THROW(while (!operation.test()) std::this_thread::yield(), Error);
      EXPECT_THROW(operation.test(), Error) << "it did not fail for good";
      EXPECT_THROW(operation.wait(), Error);
      EXPECT_TRUE(communicator->failure());
    }
    bootstrap.barrier();
    communicator.reset();  // before the operation that has failed
  });
}

}  // namespace
}  // namespace polyring
