// What every transport must do for whole collectives: each algorithm of the catalogue, in every shape,
// exactly; the same bits whatever happens around it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <random>
#include <thread>

#include "base/error.hpp"
#include "bench/measure/payload.hpp"
#include "collectives/runtime/executor.hpp"
#include "collectives/runtime/half.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "tests/collectives/fabric.hpp"
#include "tests/collectives/sweep.hpp"
#include "tests/sanitized.hpp"

namespace polyring {
namespace {

using testing::Fabric;

// ThreadSanitizer looks for races, which do not depend on values and most shapes. AddressSanitizer has few
// ranks and operations, too, for the time that they take: executor_test tries all operations there, and the
// plain build sweeps all of both.
#if defined(__SANITIZE_THREAD__)
const std::vector<int> kRankCounts{2, 4};
const std::vector<ElementKind> kKinds{ElementKind::float32, ElementKind::bfloat16};
const std::vector<ReduceOp> kOps{ReduceOp::avg};
#else
const std::vector<int> kRankCounts = kSanitized ? std::vector{1, 2, 3, 4} : std::vector{1, 2, 3, 4, 6};
const std::vector<ElementKind> kKinds(std::begin(kElementKinds), std::end(kElementKinds));
const std::vector<ReduceOp> kOps = kSanitized
                                       ? std::vector{ReduceOp::sum, ReduceOp::avg}
                                       : std::vector<ReduceOp>(std::begin(kReduceOps), std::end(kReduceOps));
#endif

/// A rank's input and output, from the library or, at odd addresses, from anywhere.
class Buffers {
 public:
  Buffers(Transport& transport, std::size_t bytes)
      : input_(transport.allocate({bytes + 1})),
        output_(transport.allocate({bytes + 1})),
        other_input_(bytes + 2),
        other_output_(bytes + 2) {}

  std::byte* input(bool library) { return library ? input_.get() : other_input_.data() + 1; }
  std::byte* output(bool library) { return library ? output_.get() : other_output_.data() + 1; }

 private:
  Memory input_;
  Memory output_;
  std::vector<std::byte> other_input_;
  std::vector<std::byte> other_output_;
};

struct Case {
  Plan plan;
  Count count = 0;
  ElementKind kind = ElementKind::float32;
  ReduceOp op = ReduceOp::sum;
  Collective collective = Collective::allreduce;

  Executor executor(Transport& transport) const {
    return Executor(make_schedule(plan, transport.size(), count, size_of(kind), collective), kind, op,
                    transport);
  }
};

std::string to_text(const Case& test) {
  return fmt::format("{} by {} of {} {}, {}", to_text(test.collective), to_text(test.plan), test.count,
                     to_text(test.kind), to_text(test.op));
}

/// This rank's part: in place and out of it, in both kinds of buffers, with one executor.
void expect_right(Transport& transport, Buffers& buffers, const Case& test) {
  const int ranks = transport.size();
  const Rank rank = transport.rank();
  const Payload payload(test.kind, test.op, ranks);
  const Count given = input_count(test.collective, ranks, test.count);
  const Count gained = output_count(test.collective, ranks, test.count);
  const auto bytes = [&](Count count) { return bytes_of(count, test.kind).value; };
  const std::size_t own = bytes(rank * (test.count / ranks));  // where this rank's block begins
  Executor executor = test.executor(transport);
  for (const bool library : {true, false}) {
    for (const bool in_place : {false, true}) {
      if (in_place && test.collective == Collective::alltoall) continue;
      std::byte* output = buffers.output(library);
      std::byte* input = buffers.input(library);
      if (in_place && given < gained) input = output + own;
      if (in_place && given == gained) input = output;
      if (in_place && given > gained) output = input + own;
      std::memset(output, 0xff, bytes(gained));
      output[bytes(gained)] = std::byte{0x5a};
      payload.fill({test.collective, rank, test.count}, input);
      const std::vector<std::byte> before(input, input + bytes(given));
      const std::byte after = output[bytes(gained)];
      executor.run(input, output);
      ASSERT_EQ(payload.wrong({test.collective, rank, test.count}, output, gained, Match::bits, 0), 0)
          << to_text(test) << (in_place ? ", in place" : "") << (library ? ", of the library" : "")
          << ", on rank " << rank;
      ASSERT_EQ(output[bytes(gained)], after) << to_text(test) << ": wrote beyond its end";
      for (std::size_t i = 0; i < before.size(); ++i) {
        const bool is_output = input + i >= output && input + i < output + bytes(gained);
        ASSERT_TRUE(is_output || input[i] == before[i]) << to_text(test) << ": wrote to its input";
      }
    }
  }
}

class EveryTransportExecutes : public ::testing::TestWithParam<Fabric> {};

INSTANTIATE_TEST_SUITE_P(Fabrics, EveryTransportExecutes, ::testing::ValuesIn(testing::fabrics()),
                         [](const auto& row) { return row.param.name(); });

TEST_P(EveryTransportExecutes, EveryAlgorithmShapeAndSize) {
  // Slices of it are longer than what is copied rather than read in place.
  constexpr Count kLong = 6 * Payload::kPeriod + 1;
  for (const int ranks : kRankCounts) {
    testing::run_over(GetParam(), ranks, [&](Transport& transport) {
      Buffers buffers(transport, kLong * sizeof(float));
      for (const Algorithm& algorithm : algorithms()) {
        for (const Plan& plan : testing::plans_of(algorithm, ranks, sizeof(float))) {
          for (const Count count : testing::awkward_counts(ranks)) {
            expect_right(transport, buffers, {plan, count});
          }
          if (plan.chunk.value == 0) expect_right(transport, buffers, {plan, kLong});
        }
      }
    });
  }
}

TEST_P(EveryTransportExecutes, EveryCollectiveOfBlocks) {
  constexpr Count kLong = 2 * Payload::kPeriod + 1;
  for (const int ranks : kRankCounts) {
    testing::run_over(GetParam(), ranks, [&](Transport& transport) {
      Buffers buffers(transport, static_cast<std::size_t>(kLong * ranks) * sizeof(float));
      for (const Algorithm& algorithm : algorithms()) {
        for (const Plan& plan : testing::plans_of(algorithm, ranks, sizeof(float))) {
          for (const Collective collective : testing::block_collectives_of(plan)) {
            for (const Count block : testing::awkward_blocks()) {
              expect_right(transport, buffers,
                           {plan, block * ranks, ElementKind::float32, ReduceOp::sum, collective});
            }
            if (plan.chunk.value > 0) continue;
            expect_right(transport, buffers,
                         {plan, kLong * ranks, ElementKind::float32, ReduceOp::sum, collective});
          }
        }
      }
    });
  }
}

TEST_P(EveryTransportExecutes, EveryCollectiveOfBlocksOfEveryKindAndOperation) {
  const std::vector<Plan> plans{{"multi-ring", {2, 2}, {"ring", "ring"}, 2, {4096}},
                                {"multi-ring", {2, 2}, {"direct", "direct"}, 2, {4096}},
                                {"multi-ring", {2, 2}, {"pairwise", "halving"}, 1, {}},
                                {"halving-doubling", {3}, {}, 2, {4096}}};
  for (const Plan& plan : plans) {
    const Count count = plan.ranks() * (Payload::kPeriod + 1);
    testing::run_over(GetParam(), plan.ranks(), [&](Transport& transport) {
      Buffers buffers(transport, static_cast<std::size_t>(count) * 8);
      for (const Collective collective : testing::block_collectives_of(plan)) {
        for (const ElementKind kind : kKinds) {
          for (const ReduceOp op : kOps) {
            if (reduces(collective) || op == kOps.front())
              expect_right(transport, buffers, {plan, count, kind, op, collective});
          }
        }
      }
    });
  }
}

TEST_P(EveryTransportExecutes, EveryKindAndOperation) {
  constexpr Count kCount = 3 * Payload::kPeriod + 1;
  testing::run_over(GetParam(), 3, [](Transport& transport) {
    Buffers buffers(transport, kCount * 8);
    for (const std::string& algorithm : testing::algorithm_names()) {
      const Plan plan{algorithm, {3}, {}, 2, {8192}};
      for (const ElementKind kind : kKinds) {
        for (const ReduceOp op : kOps) expect_right(transport, buffers, {plan, kCount, kind, op});
      }
    }
  });
}

TEST_P(EveryTransportExecutes, InManyChunks) {
  constexpr Count kCount = (1 << 16) + 3;
  testing::run_over(GetParam(), 4, [&](Transport& transport) {
    Buffers buffers(transport, kCount * sizeof(float));
    for (const std::string& algorithm : testing::algorithm_names()) {
      expect_right(transport, buffers, {{algorithm, {4}, {}, 2, {1 << 14}}, kCount});
    }
    expect_right(transport, buffers, {{"multi-ring", {2, 2}, {"direct", "ring"}, 2, {1 << 14}}, kCount});
  });
}

TEST(SharedTransportExecutes, MoreStreamsAtOnceThanABoardHasOffersFor) {
  // In flight, four chunks of each lane; in more than one step, and so little in each that it is copied.
  constexpr int kLanes = 1024;
  constexpr Count kChunk = 100;
  constexpr Count kCount = kLanes * 4 * kChunk;
  const Plan plan{"multi-ring", {4}, {"halving"}, kLanes, {kChunk * sizeof(float)}};
  testing::run_over({Fabric::Kind::shared}, 4, [&](Transport& transport) {
    Buffers buffers(transport, kCount * sizeof(float));
    expect_right(transport, buffers, {plan, kCount});
  });
}

/// Fractions of every size: the order of the additions shows in the last bits.
std::vector<float> fractions(Rank rank, Count count) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    value = std::ldexp(static_cast<float>(random() % 10000), -static_cast<int>(random() % 16));
    if (random() % 2 == 0) value = -value;
  }
  return values;
}

std::vector<std::byte> as_kind(ElementKind kind, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * static_cast<std::size_t>(size_of(kind)));
  const auto put = [&](std::size_t i, auto value) {
    std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  };
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (kind == ElementKind::float16) {
      put(i, to_float16(values[i]));
    } else if (kind == ElementKind::bfloat16) {
      put(i, to_bfloat16(values[i]));
    } else {
      put(i, values[i]);
    }
  }
  return bytes;
}

std::vector<float> as_floats(ElementKind kind, const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / static_cast<std::size_t>(size_of(kind)));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (kind == ElementKind::float32) {
      std::memcpy(&values[i], bytes.data() + i * sizeof(float), sizeof(float));
      continue;
    }
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * sizeof bits, sizeof bits);
    values[i] = kind == ElementKind::float16 ? to_float(Float16{bits}) : to_float(Bfloat16{bits});
  }
  return values;
}

constexpr ElementKind kRounded[] = {ElementKind::float16, ElementKind::bfloat16, ElementKind::float32};

/// Of four ranks: each algorithm, and multi-rings of two dimensions with the patterns that run between hosts.
std::vector<Plan> plans_of_four() {
  std::vector<Plan> plans;
  for (const std::string& algorithm : testing::algorithm_names())
    plans.push_back({algorithm, {4}, {}, 2, {4000}});
  for (const auto& patterns :
       std::vector<std::vector<std::string>>{{"direct", "ring"}, {"star", "doubling"}, {"star", "halving"}}) {
    plans.push_back({"multi-ring", {2, 2}, patterns, 2, {4000}});
  }
  return plans;
}

TEST_P(EveryTransportExecutes, WithTheSameBitsOnAllRanksFromRunToRunAndInAnyBuffer) {
  constexpr Count kCount = 3000;
  for (const ElementKind kind : kRounded) {
    for (const Plan& plan : plans_of_four()) {
      const Case test{plan, kCount, kind};
      const auto bytes = static_cast<std::size_t>(kCount * size_of(kind));
      std::vector<std::byte> first;  // rank 0's first result
      for (int repetition = 0; repetition < 2; ++repetition) {
        testing::run_over(GetParam(), 4, [&](Transport& transport) {
          const std::vector<std::byte> input = as_kind(kind, fractions(transport.rank(), kCount));
          Buffers buffers(transport, bytes);
          Executor executor = test.executor(transport);
          std::vector<std::byte> results;
          for (const bool library : {true, false}) {
            for (const bool in_place : {false, true}) {
              std::byte* const output = buffers.output(library);
              std::byte* const from = in_place ? output : buffers.input(library);
              std::memcpy(from, input.data(), bytes);
              // Now this rank comes last, now another.
              if (repetition == transport.rank()) std::this_thread::sleep_for(std::chrono::microseconds(300));
              executor.run(from, output);
              results.insert(results.end(), output, output + bytes);
            }
          }
          const auto all = testing::gather(transport, results);
          if (transport.rank() > 0) return;
          if (first.empty()) first.assign(results.begin(), results.begin() + static_cast<long>(bytes));
          for (const auto& of_rank : all) {
            for (std::size_t at = 0; at < of_rank.size(); at += bytes) {
              ASSERT_EQ(std::memcmp(&of_rank[at], first.data(), bytes), 0) << to_text(test);
            }
          }
        });
      }
    }
  }
}

/// Algorithms that reduce in one step: the guarantee of executor.hpp says what comes out.
TEST_P(EveryTransportExecutes, OneStepRoundsOnceAndAddsInTheOrderOfTheRanks) {
  constexpr Count kCount = 3000;
  constexpr int kRanks = 5;
  for (const ElementKind kind : kRounded) {
    for (const ReduceOp op : {ReduceOp::sum, ReduceOp::avg}) {
      std::vector<float> sum(kCount);
      for (Rank rank = 0; rank < kRanks; ++rank) {
        const std::vector<float> input = as_floats(kind, as_kind(kind, fractions(rank, kCount)));
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = rank == 0 ? input[i] : sum[i] + input[i];
      }
      if (op == ReduceOp::avg) {
        for (float& value : sum) value /= kRanks;
      }
      const std::vector<std::byte> expected = as_kind(kind, sum);
      for (const char* algorithm : {"one-shot", "direct"}) {
        const Case test{{algorithm, {kRanks}, {}, 1, {}}, kCount, kind, op};
        testing::run_over(GetParam(), kRanks, [&](Transport& transport) {
          const std::vector<std::byte> input = as_kind(kind, fractions(transport.rank(), kCount));
          std::vector<std::byte> output(input.size());
          test.executor(transport).run(input.data(), output.data());
          EXPECT_EQ(output, expected) << to_text(test);
        });
      }
    }
  }
}

/// Of as many digits as the kind has, but so few in all that float32 adds those of eight ranks without
/// rounding, in whatever order.
std::vector<float> exact_in_float32(ElementKind kind, Rank rank, Count count) {
  const int digits = kind == ElementKind::float16 ? 11 : 8;
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) {
    const auto whole =
        static_cast<float>(1 + random() % ((1u << digits) - 1));  // no zero, whose sign is lost
    value = std::ldexp(whole, static_cast<int>(random() % static_cast<unsigned>(20 - digits)) - 8);
    if (random() % 2 == 0) value = -value;
  }
  return values;
}

TEST_P(EveryTransportExecutes, EveryPlanRoundsHalvesOnce) {
  constexpr Count kCount = 1501;
  for (const int ranks : kRankCounts) {
    for (const ElementKind kind : {ElementKind::float16, ElementKind::bfloat16}) {
      const ReduceOp op = kind == ElementKind::float16 ? ReduceOp::sum : ReduceOp::avg;
      std::vector<float> sum(kCount);
      for (Rank rank = 0; rank < ranks; ++rank) {
        const std::vector<float> input = exact_in_float32(kind, rank, kCount);
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += input[i];
      }
      for (float& value : sum) value /= op == ReduceOp::avg ? static_cast<float>(ranks) : 1.0f;
      const std::vector<std::byte> expected = as_kind(kind, sum);
      testing::run_over(GetParam(), ranks, [&](Transport& transport) {
        const std::vector<std::byte> input = as_kind(kind, exact_in_float32(kind, transport.rank(), kCount));
        Buffers buffers(transport, input.size());
        for (const Algorithm& algorithm : algorithms()) {
          for (Plan plan : testing::plans_of(algorithm, ranks, size_of(kind))) {
            if (plan.chunk.value > 0) plan.chunk = {512};
            const Case test{plan, kCount, kind, op};
            Executor executor = test.executor(transport);
            for (const bool library : {true, false}) {
              for (const bool in_place : {false, true}) {
                std::byte* const output = buffers.output(library);
                std::byte* const from = in_place ? output : buffers.input(library);
                std::memcpy(from, input.data(), input.size());
                executor.run(from, output);
                ASSERT_TRUE(std::equal(expected.begin(), expected.end(), output))
                    << to_text(test) << (in_place ? ", in place" : "") << (library ? ", of the library" : "");
              }
            }
          }
        }
      });
    }
  }
}

TEST_P(EveryTransportExecutes, WaitsForARankThatComesLate) {
  constexpr Count kCount = 5 * Payload::kPeriod;
  testing::run_over(GetParam(), 4, [&](Transport& transport) {
    Buffers buffers(transport, kCount * sizeof(float));
    if (transport.rank() == 2) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    expect_right(transport, buffers, {{"multi-ring", {2, 2}, {}, 2, {4096}}, kCount});
  });
}

TEST_P(EveryTransportExecutes, GivesUpOnARankThatNeverComes) {
  for (const Rank absent : {0, 2}) {
    testing::run_over(
        GetParam(), 3,
        [&](Transport& transport) {
          if (transport.rank() == absent) return;
          std::vector<std::byte> data(400);
          Executor executor = Case{{"direct", {3}, {}, 1, {}}, 100}.executor(transport);
          try {
            executor.run(data.data(), data.data());
            ADD_FAILURE() << "rank " << transport.rank() << " finished";
          } catch (const Error& error) {
            EXPECT_EQ(error.code(), ExitCode::timeout);
            EXPECT_THAT(testing::waited_for(error.what(), transport.rank()), ::testing::Contains(absent));
          }
        },
        Seconds{0.1});
  }
}

TEST_P(EveryTransportExecutes, SeveralExecutorsByTurns) {
  constexpr Count kMost = 2 * Payload::kPeriod;
  testing::run_over(GetParam(), 4, [&](Transport& transport) {
    const Payload payload(ElementKind::float32, ReduceOp::sum, 4);
    std::vector<Executor> executors;
    std::vector<Count> counts;
    for (const std::string& algorithm : testing::algorithm_names()) {
      counts.push_back(kMost - static_cast<Count>(counts.size()) * 211);
      executors.push_back(Case{{algorithm, {4}, {}, 2, {1024}}, counts.back()}.executor(transport));
    }
    Buffers buffers(transport, kMost * sizeof(float));
    for (std::size_t turn = 0; turn < 5 * executors.size(); ++turn) {
      const std::size_t at = turn * 3 % executors.size();
      payload.fill(transport.rank(), buffers.input(true), counts[at]);
      executors[at].run(buffers.input(true), buffers.output(true));
      ASSERT_EQ(payload.wrong(buffers.output(true), counts[at]), 0) << executors[at].schedule().algorithm;
    }
  });
}

TEST_P(EveryTransportExecutes, InMemoryOfSomeThatOthersReachAndOfSomeThatTheyDoNot) {
  constexpr Count kCount = (1 << 17) + 5;
  testing::run_over(GetParam(), 3, [&](Transport& transport) {
    Buffers buffers(transport, kCount * sizeof(float));
    const Payload payload(ElementKind::float32, ReduceOp::avg, 3);
    for (const std::string& algorithm : testing::algorithm_names()) {
      Executor executor =
          Case{{algorithm, {3}, {}, 1, {}}, kCount, ElementKind::float32, ReduceOp::avg}.executor(transport);
      for (const int choice : {1, 2, 6}) {
        const bool library = (choice >> transport.rank() & 1) != 0;
        for (const bool other : {library, !library}) {
          std::byte* const output = buffers.output(other);
          payload.fill(transport.rank(), buffers.input(library), kCount);
          executor.run(buffers.input(library), output);
          ASSERT_EQ(payload.wrong(output, kCount), 0) << algorithm << ", " << choice;
        }
      }
    }
  });
}

TEST_P(EveryTransportExecutes, InMemoryThatComesAndGoes) {
  // One segment after another takes the place of the last.
  constexpr Count kCount = 4 * Payload::kPeriod;
  testing::run_over(GetParam(), 3, [&](Transport& transport) {
    for (int round = 0; round < 100; ++round) {
      Buffers buffers(transport, static_cast<std::size_t>(kCount + round) * sizeof(float));
      expect_right(transport, buffers, {{"direct", {3}, {}, 1, {}}, kCount + round});
    }
  });
}

TEST_P(EveryTransportExecutes, InMoreMemoryThanRanksCanReach) {
  // More pieces than a control block has places for, on one rank; the last ones are anywhere.
  constexpr Count kCount = 4 * Payload::kPeriod;
  testing::run_over(GetParam(), 3, [&](Transport& transport) {
    std::vector<Memory> taken;
    for (int i = 0; transport.rank() == 0 && i < 600; ++i) taken.push_back(transport.allocate({8192}));
    Buffers buffers(transport, kCount * sizeof(float));
    expect_right(transport, buffers, {{"direct", {3}, {}, 1, {}}, kCount});
    expect_right(transport, buffers, {{"ring", {3}, {}, 2, {4096}}, kCount});
  });
}

}  // namespace
}  // namespace polyring
