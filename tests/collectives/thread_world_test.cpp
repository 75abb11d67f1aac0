// Ranks that are threads of one process: their world's calls, and who is named when one of them is absent.
#include "collectives/runtime/thread_world.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr Seconds kLong{30};
constexpr Seconds kShort{0.5};
constexpr Seconds kEnough{3};  // for those who come to come before it is over, on a busy machine

/// Nothing that a rank does throws.
void run_worlds(int ranks, const std::function<void(ThreadWorld&)>& body, Seconds timeout = kLong) {
  ThreadTeam team(ranks, kLong);
  std::vector<std::thread> threads;
  for (Rank rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&team, &body, rank, timeout] {
      ThreadWorld world(team, rank);
      world.set_timeout(timeout);
      body(world);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

std::vector<std::byte> bytes_of_rank(Rank rank) {
  return std::vector<std::byte>(index(3 * rank), std::byte(rank));
}

/// What `call` fails with; empty when it does not.
std::string failure_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::timeout) << error.what();
    return error.what();
  }
  return "";
}

class ThreadWorlds : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Ranks, ThreadWorlds, ::testing::Values(1, 2, 3, 4, 6));

TEST_P(ThreadWorlds, AreOneHostAndOneProcess) {
  std::vector<int> first(index(GetParam()));
  run_worlds(GetParam(), [&](ThreadWorld& world) {
    EXPECT_EQ(world.size(), GetParam());
    EXPECT_EQ(world.nodes(), 1);
    EXPECT_EQ(world.ranks_per_node(), GetParam());
    EXPECT_TRUE(world.shares_host_with(0));
    EXPECT_EQ(world.is_first_of_host(), world.rank() == 0);
    first[index(world.rank())] = world.is_first_of_process() ? 1 : 0;
  });
  EXPECT_EQ(std::accumulate(first.begin(), first.end(), 0), 1);
}

TEST_P(ThreadWorlds, ExchangeBytes) {
  run_worlds(GetParam(), [&](ThreadWorld& world) {
    for (int round = 0; round < 50; ++round) {
      const auto everywhere = world.allgather(bytes_of_rank(world.rank() + round));
      const auto on_root = world.gather(bytes_of_rank(world.rank() + round));
      ASSERT_EQ(everywhere.size(), index(world.size()));
      for (Rank rank = 0; rank < world.size(); ++rank)
        EXPECT_EQ(everywhere[index(rank)], bytes_of_rank(rank + round));
      EXPECT_EQ(on_root, world.rank() == 0 ? everywhere : decltype(everywhere){});
    }
  });
}

TEST_P(ThreadWorlds, ComputeOverTheRanks) {
  const int ranks = GetParam();
  run_worlds(ranks, [&](ThreadWorld& world) {
    const double own = world.rank();
    EXPECT_EQ(world.sum(10 + world.rank()), 10 * ranks + ranks * (ranks - 1) / 2);
    EXPECT_EQ(world.max(own), ranks - 1);
    EXPECT_THAT(world.max(std::vector{own, -own, 7.5}), ElementsAre(ranks - 1, 0, 7.5));
    EXPECT_THAT(world.max(std::vector<double>{}), ElementsAre());
    EXPECT_EQ(world.broadcast(100 + world.rank()), 100);
    EXPECT_EQ(world.broadcast(200 + world.rank(), kLong), 200);
  });
}

/// Nobody leaves a barrier before all have come, whichever of the two kinds.
TEST_P(ThreadWorlds, WaitAtBarriers) {
  std::atomic<int> come = 0;
  run_worlds(GetParam(), [&](ThreadWorld& world) {
    for (int round = 1; round <= 200; ++round) {
      ++come;
      round % 2 == 0 ? world.barrier() : world.idle_barrier();
      EXPECT_GE(come, round * world.size());
      world.barrier();
    }
  });
}

/// Twice, as when ranks are measured again.
TEST_P(ThreadWorlds, HavePartsWithAWorldOfTheirOwn) {
  const int ranks = GetParam();
  run_worlds(ranks, [&](ThreadWorld& world) {
    for (const int modulus : {2, 3, 2}) {
      // Disjoint ones at the same time.
      std::vector<Rank> members;
      for (Rank rank = world.rank() % modulus; rank < ranks; rank += modulus) members.push_back(rank);
      const std::unique_ptr<World> own = world.part(members, World::Others::work);
      EXPECT_EQ(own->size(), static_cast<int>(members.size()));
      EXPECT_EQ(members[index(own->rank())], world.rank());
      EXPECT_EQ(own->sum(world.rank()), std::accumulate(members.begin(), members.end(), 0));
      EXPECT_EQ(own->shares_cores(), world.shares_cores());
      own->barrier();
    }
    EXPECT_EQ(world.sum(1), ranks);
  });
}

/// Rank 1 comes to neither; all others name it, and tell whoever wants to know while the exception is
/// handled.
TEST(ThreadWorld, NamesWhoIsAbsent) {
  using Call = std::function<void(const ThreadWorld&)>;
  const std::vector<Call> calls{[](const ThreadWorld& world) { world.barrier(); },
                                [](const ThreadWorld& world) { world.broadcast(1, kEnough); }};
  for (const Call& call : calls) {
    std::vector<std::string> failures(4);
    std::atomic<int> told = 0;
    std::latch others(3);
    run_worlds(
        4,
        [&](ThreadWorld& world) {
          world.on_failure([&] {
            EXPECT_TRUE(std::current_exception());
            ++told;
          });
          if (world.rank() == 1) return;
          others.arrive_and_wait();
          failures[index(world.rank())] = failure_of([&] { call(world); });
        },
        kEnough);
    EXPECT_EQ(told, 3);
    for (const Rank rank : {0, 2, 3})
      EXPECT_THAT(failures[index(rank)], AllOf(HasSubstr("rank 1:"), Not(HasSubstr("rank 2"))));
  }
}

/// The rank that comes too late fails as well, and what comes after it: the others no longer wait.
TEST(ThreadWorld, StaysBroken) {
  std::atomic<bool> given_up = false;
  std::vector<std::string> failures;
  run_worlds(
      2,
      [&](ThreadWorld& world) {
        if (world.rank() == 0) {
          EXPECT_NE(failure_of([&] { world.barrier(); }), "");
          given_up = true;
          return;
        }
        while (!given_up) std::this_thread::yield();
        failures.push_back(failure_of([&] { world.barrier(); }));
        failures.push_back(failure_of([&] { world.sum(1); }));
        failures.push_back(failure_of([&] { world.allgather({}); }));
      },
      kShort);
  EXPECT_THAT(failures, Each(HasSubstr("waited 500 ms for rank 1:")));
}

TEST(ThreadTeam, TellsItsPartsOfAFailure) {
  for (const bool before : {true, false}) {
    ThreadTeam team(3, kLong);
    if (before) team.abort("out of luck");
    ThreadTeam& part = team.part(std::vector<Rank>{0, 1});
    std::thread waiting([&] { EXPECT_THROW(part.allgather(0, {}), Error); });
    std::thread at_barrier([&] { EXPECT_THROW(part.barrier(1, kLong, true), Error); });
    if (!before) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // so that they mostly wait
      team.abort("out of luck");
    }
    waiting.join();
    at_barrier.join();
  }
}

TEST(ThreadWorld, GivesUpForTransports) {
  run_worlds(1, [](ThreadWorld& world) {
    world.set_timeout({3});
    const WaitRules rules = world.wait_rules();
    EXPECT_EQ(rules.timeout.value, 3);
    EXPECT_THAT(failure_of([&] { rules.give_up("messages", {0}); }), HasSubstr("waited 3.00 s for rank 0 ("));
    EXPECT_THAT(failure_of([&] { rules.give_up("messages", {}); }),
                HasSubstr("waited 3.00 s for messages: "));
  });
}

}  // namespace
}  // namespace polyring
