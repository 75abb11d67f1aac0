// The body of the exchange kernel, as the host compiles it, with threads of the host as ranks: once as a
// software GPU runs it, and once with a thread of the host for each thread of the grid.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "collectives/cuda/arguments.hpp"
#include "collectives/cuda/kernel_list.hpp"
#include "collectives/cuda/kernel_table.hpp"
#include "collectives/cuda/make_arguments.hpp"

namespace polyring {
namespace {

using Sum = ExchangeBody<Reducing<element::int32, element::int32, operation::sum>>;

constexpr std::size_t kPart = 37;                  // elements of each rank's part
constexpr std::uint32_t kFirstEpoch = 0xfffffffd;  // the epochs wrap around
constexpr int kExchanges = 6;

/// What the ranks do: each combines its part for all, or all of it for itself, or hands its part to all.
enum class Way { part_for_all, all_for_itself, hand_on };

struct Case {
  Way way;
  bool in_place;
  int ranks;
};

std::string name_of(const Case& given) {
  const char* const ways[] = {"part_for_all", "all_for_itself", "hand_on"};
  return std::string(ways[static_cast<int>(given.way)]) + (given.in_place ? "_in_place" : "") + "_" +
         std::to_string(given.ranks);
}

void PrintTo(const Case& given, std::ostream* out) { *out << name_of(given); }

std::byte* bytes(std::int32_t* data) { return reinterpret_cast<std::byte*>(data); }

/// Memory of one rank, which all reach.
struct RankMemory {
  explicit RankMemory(std::size_t ranks)
      : input(ranks * kPart), output(ranks * kPart), staging(ranks * kPart), flags(ranks), epochs(ranks) {}

  std::vector<std::int32_t> input;
  std::vector<std::int32_t> output;
  std::vector<std::int32_t> staging;
  std::vector<FlagPair> flags;  // by rank
  std::vector<std::uint32_t> epochs;
  StepCounters counters{};
  std::uint32_t abort = 0;
  std::array<std::uint32_t, 8> status{};  // by rank
};

/// A wait of up to 50 microseconds, mostly of none.
void delay() {
  thread_local std::mt19937 random{std::random_device{}()};
  const auto draw = random() % 400;
  if (draw < 8) std::this_thread::sleep_for(std::chrono::microseconds(draw * 7));
  if (draw < 100) std::this_thread::yield();
}

const HostPause kPause{[](void*) { std::this_thread::yield(); }, nullptr};

class Ranks {
 public:
  explicit Ranks(const Case& given) : case_(given) {
    for (int r = 0; r < given.ranks; ++r) memory_.push_back(std::make_unique<RankMemory>(size()));
    if (!given.in_place) return;
    for (const auto& rank : memory_) rank->output.clear();
  }

  std::size_t size() const { return static_cast<std::size_t>(case_.ranks); }
  RankMemory& memory(std::size_t rank) { return *memory_[rank]; }
  std::vector<std::int32_t>& output(std::size_t rank) {
    return case_.in_place ? memory(rank).input : memory(rank).output;
  }

  ExchangeArguments arguments(std::size_t rank) {
    RankMemory& own = memory(rank);
    const bool stages = case_.in_place && case_.way == Way::all_for_itself;
    const std::size_t first = case_.way == Way::all_for_itself ? 0 : rank * kPart;
    const std::size_t count = case_.way == Way::all_for_itself ? size() * kPart : kPart;
    std::vector<const std::byte*> operands;
    std::vector<std::byte*> results;
    ExchangeArguments made{};
    for (std::size_t r = 0; r < size(); ++r) {
      const bool staged = stages && r != rank;
      operands.push_back(bytes((staged ? memory(r).staging : memory(r).input).data() + first));
      const bool writes = case_.way == Way::all_for_itself ? r == rank : true;
      // Handing on in place, a rank has its own part already.
      const bool there = case_.way == Way::hand_on && case_.in_place && r == rank;
      if (writes && !there) results.push_back(bytes(output(r).data() + first));
      if (r == rank) continue;
      made.theirs[made.peer_count] = &memory(r).flags[rank];
      made.places[made.peer_count] = static_cast<std::uint8_t>(r);
      ++made.peer_count;
    }
    const Reduction reduction{ElementKind::int32, ReduceOp::sum};
    made.reduce = case_.way == Way::hand_on
                      ? copy_arguments(results, operands[rank], count * 4)
                      : reduce_arguments(reduction, results, operands, static_cast<Count>(count));
    made.own = own.flags.data();
    made.epochs = own.epochs.data();
    made.own_place = static_cast<std::uint8_t>(rank);
    made.counters = &own.counters;
    if (stages) {
      made.staged_from = bytes(own.input.data());
      made.staging = bytes(own.staging.data());
      made.staged_bytes = static_cast<std::int64_t>(own.input.size() * 4);
    }
    made.watch = {&own.abort, own.status.data(), 1};
    return made;
  }

  /// As after the exchange with this epoch.
  void set_epoch(std::uint32_t epoch) {
    for (const auto& rank : memory_) {
      for (FlagPair& pair : rank->flags) pair = {epoch, epoch};
      std::ranges::fill(rank->epochs, epoch);
      rank->counters.copies = rank->counters.copied = epoch;
    }
  }

  /// Other values at each exchange.
  void fill(std::size_t rank, int exchange) {
    for (std::size_t i = 0; i < memory(rank).input.size(); ++i)
      memory(rank).input[i] = value(rank, exchange, i);
  }

  void check(std::size_t rank, int exchange) {
    for (std::size_t i = 0; i < output(rank).size(); ++i) {
      std::int32_t expected = value(i / kPart, exchange, i);
      if (case_.way != Way::hand_on) {
        expected = 0;
        for (std::size_t r = 0; r < size(); ++r) expected += value(r, exchange, i);
      }
      ASSERT_EQ(output(rank)[i], expected)
          << "rank " << rank << ", exchange " << exchange << ", element " << i;
    }
  }

 private:
  static std::int32_t value(std::size_t rank, int exchange, std::size_t i) {
    return static_cast<std::int32_t>(1000 * rank + 100000 * static_cast<std::size_t>(exchange) + i * i);
  }

  Case case_;
  std::vector<std::unique_ptr<RankMemory>> memory_;
};

template <typename Body, int kPhase = 0>
void run_thread(const ExchangeArguments& arguments, const ThreadPlace& place, StepState& state,
                std::barrier<>& block) {
  delay();
  Body::template run<kPhase>(arguments, place, state, kPause);
  if constexpr (kPhase + 1 < Body::kPhases) {
    block.arrive_and_wait();
    run_thread<Body, kPhase + 1>(arguments, place, state, block);
  }
}

/// As a GPU does it: all threads at once.
template <typename Body>
void run_grid(const ExchangeArguments& arguments, LaunchShape shape) {
  std::vector<StepState> states(shape.blocks);
  std::vector<std::unique_ptr<std::barrier<>>> blocks;
  std::vector<std::jthread> threads;
  for (std::uint32_t b = 0; b < shape.blocks; ++b) {
    blocks.push_back(std::make_unique<std::barrier<>>(shape.threads));
    for (std::uint32_t t = 0; t < shape.threads; ++t) {
      threads.emplace_back([&arguments, shape, b, t, &state = states[b], &block = *blocks[b]] {
        run_thread<Body>(arguments, {b, shape.blocks, t, shape.threads}, state, block);
      });
    }
  }
}

const HostKernel& kernel(Way way) {
  const char* const name = way == Way::hand_on ? "polyring_copy" : "polyring_reduce_sum_int32_int32";
  return *find_host_kernel(name);
}

class Exchanges : public testing::TestWithParam<Case> {
 protected:
  /// All ranks do several exchanges; between two of them each looks at its results and fills its input.
  void exchange_all(const std::function<void(const ExchangeArguments&)>& run) {
    Ranks ranks(GetParam());
    ranks.set_epoch(kFirstEpoch - 1);
    std::vector<std::jthread> threads;
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      threads.emplace_back([&ranks, &run, r] {
        for (int e = 0; e < kExchanges; ++e) {
          delay();
          ranks.fill(r, e);
          const ExchangeArguments arguments = ranks.arguments(r);
          run(arguments);
          ranks.check(r, e);
          EXPECT_THAT(ranks.memory(r).status, testing::Each(0u));
          for (std::size_t peer = 0; peer < ranks.size(); ++peer) {
            if (peer == r) continue;
            EXPECT_EQ(ranks.memory(r).epochs[peer], kFirstEpoch + static_cast<std::uint32_t>(e));
          }
        }
      });
    }
  }
};

TEST_P(Exchanges, AsASoftwareGpuRunsThem) {
  for (const LaunchShape shape : {LaunchShape{1, 1}, LaunchShape{3, 2}, LaunchShape{2, 32}}) {
    exchange_all([&](const ExchangeArguments& arguments) {
      kernel(GetParam().way).run(&arguments, shape, {[](void*) { delay(); }, nullptr});
    });
  }
}

TEST_P(Exchanges, WithAllThreadsAtOnce) {
  for (const LaunchShape shape : {LaunchShape{2, 2}, LaunchShape{3, 1}}) {
    exchange_all([&](const ExchangeArguments& arguments) {
      if (GetParam().way == Way::hand_on) return run_grid<ExchangeBody<CopyingOperand>>(arguments, shape);
      run_grid<Sum>(arguments, shape);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, Exchanges,
                         testing::Values(Case{Way::part_for_all, false, 2}, Case{Way::part_for_all, false, 4},
                                         Case{Way::part_for_all, true, 2}, Case{Way::part_for_all, true, 3},
                                         Case{Way::all_for_itself, false, 3},
                                         Case{Way::all_for_itself, true, 2},
                                         Case{Way::all_for_itself, true, 4}, Case{Way::hand_on, false, 2},
                                         Case{Way::hand_on, true, 4}),
                         [](const auto& given) { return name_of(given.param); });

/// Runs rank 0's kernel and sets its abort word when `waits` says that nothing more can happen; returns its
/// status by rank.
std::array<std::uint32_t, 8> status_of_aborted(Ranks& ranks, LaunchShape shape, bool all_at_once,
                                               const std::function<bool()>& waits) {
  const ExchangeArguments arguments = ranks.arguments(0);
  std::atomic<bool> ended = false;
  std::jthread kernel_thread([&] {
    if (all_at_once)
      run_grid<Sum>(arguments, shape);
    else
      kernel(Way::part_for_all).run(&arguments, shape, kPause);
    ended = true;
  });
  while (!waits()) std::this_thread::yield();
  EXPECT_FALSE(ended);
  flags::write(ranks.memory(0).abort, 1);
  kernel_thread.join();
  return ranks.memory(0).status;
}

class AbortedExchange : public testing::TestWithParam<bool> {};

TEST_P(AbortedExchange, EndsAndSaysWhoseOperandsDidNotCome) {
  for (const bool in_place : {false, true}) {
    Ranks ranks({Way::all_for_itself, in_place, 3});
    for (std::size_t r = 0; r < ranks.size(); ++r) ranks.fill(r, 1);
    const std::vector<std::int32_t> before = ranks.output(0);
    flags::signal(ranks.memory(0).flags[1].ready, 1);
    RankMemory& own = ranks.memory(0);
    const auto is_ready = [&] {
      return flags::has_come(ranks.memory(1).flags[0].ready, 1) &&
             flags::has_come(ranks.memory(2).flags[0].ready, 1) &&
             (!in_place || flags::has_come(own.counters.copied, 1));
    };
    const auto status = status_of_aborted(ranks, {2, 3}, GetParam(), is_ready);
    EXPECT_THAT(status, testing::ElementsAre(0, 0, kMissedReady, 0, 0, 0, 0, 0));
    // The others hear that it was ready, never that it is done.
    EXPECT_EQ(ranks.memory(1).flags[0].ready, 1u);
    EXPECT_EQ(ranks.memory(1).flags[0].done, 0u);
    EXPECT_EQ(ranks.memory(2).flags[0].done, 0u);
    EXPECT_EQ(ranks.output(0), before);
  }
}

TEST_P(AbortedExchange, EndsAndSaysWhoIsNotDone) {
  Ranks ranks({Way::part_for_all, false, 3});
  for (FlagPair& pair : ranks.memory(0).flags) flags::signal(pair.ready, 1);
  flags::signal(ranks.memory(0).flags[2].done, 1);
  const auto is_done = [&] {
    return flags::has_come(ranks.memory(1).flags[0].done, 1) &&
           flags::has_come(ranks.memory(2).flags[0].done, 1);
  };
  const auto status = status_of_aborted(ranks, {2, 2}, GetParam(), is_done);
  EXPECT_THAT(status, testing::ElementsAre(0, kMissedDone, 0, 0, 0, 0, 0, 0));
  EXPECT_EQ(ranks.memory(1).flags[0].done, 1u);
}

TEST_P(AbortedExchange, LeavesTheStatusToTheFirstThatIsAborted) {
  Ranks ranks({Way::part_for_all, false, 3});
  ranks.memory(0).abort = 1;
  for (const std::uint32_t number : {5u, 6u}) {
    ExchangeArguments arguments = ranks.arguments(0);
    arguments.watch.number = number;
    if (number == 5) flags::signal(ranks.memory(0).flags[2].ready, 1);
    if (number == 6) flags::write(ranks.memory(0).flags[2].ready, 0);
    if (GetParam()) {
      run_grid<Sum>(arguments, {2, 2});
    } else {
      kernel(Way::part_for_all).run(&arguments, {2, 2}, kPause);
    }
  }
  EXPECT_THAT(ranks.memory(0).status, testing::ElementsAre(0, kMissedReady, 0, 0, 0, 0, 0, 0));
}

INSTANTIATE_TEST_SUITE_P(Threads, AbortedExchange, testing::Bool(),
                         [](const auto& run) { return run.param ? "all_at_once" : "one_by_one"; });

}  // namespace
}  // namespace polyring
