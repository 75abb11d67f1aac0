#include "collectives/runtime/executor.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <span>
#include <thread>

#include "base/error.hpp"
#include "bench/measure/payload.hpp"
#include "collectives/runtime/half.hpp"
#include "collectives/runtime/transports/threads.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "collectives/schedule/intervals.hpp"
#include "tests/collectives/forwarding_transport.hpp"
#include "tests/collectives/sweep.hpp"
#include "tests/sanitized.hpp"

namespace polyring {
namespace {

using testing::plans_of;

struct Case {
  Plan plan;
  Count count = 0;
  ElementKind kind = ElementKind::float32;
  ReduceOp op = ReduceOp::sum;
  bool in_place = false;
};

std::size_t bytes_of(const Case& test) { return bytes_of(test.count, test.kind).value; }

/// Runs the case over threads and returns each rank's output.
std::vector<std::vector<std::byte>> run(const Case& test) {
  const int ranks = test.plan.ranks();
  const Payload payload(test.kind, test.op, ranks);
  std::vector<std::vector<std::byte>> outputs(static_cast<std::size_t>(ranks));
  run_ranks(ranks, [&](ThreadTransport& transport) {
    Executor executor(make_schedule(test.plan, ranks, test.count, size_of(test.kind)), test.kind, test.op,
                      transport);
    // One byte beyond the payload must stay as it was.
    std::vector<std::byte> input(bytes_of(test) + 1, std::byte{0x5a});
    std::vector<std::byte> output(bytes_of(test) + 1, std::byte{0x5a});
    payload.fill(transport.rank(), input.data(), test.count);
    const std::vector<std::byte> before = input;
    if (test.in_place) output = input;
    executor.run(test.in_place ? output.data() : input.data(), output.data());
    EXPECT_EQ(output.back(), std::byte{0x5a});
    EXPECT_EQ(input, before) << "the input was written to";
    output.pop_back();
    outputs[static_cast<std::size_t>(transport.rank())] = std::move(output);
  });
  return outputs;
}

void expect_right(const Case& test) {
  const Payload payload(test.kind, test.op, test.plan.ranks());
  const auto outputs = run(test);
  for (std::size_t rank = 0; rank < outputs.size(); ++rank) {
    ASSERT_EQ(payload.wrong(outputs[rank].data(), test.count), 0)
        << to_text(test.plan) << " of " << test.count << " " << to_text(test.kind) << ", " << to_text(test.op)
        << (test.in_place ? ", in place" : "") << ", on rank " << rank;
  }
}

class ExecuteEveryAlgorithm : public ::testing::TestWithParam<std::string> {};

TEST_P(ExecuteEveryAlgorithm, GivesTheExactResultForEveryShapeAndSize) {
  for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 12}) {
    for (const Plan& plan : plans_of(find_algorithm(GetParam()), ranks, 4)) {
      for (const Count count : testing::awkward_counts(ranks)) {
        for (const bool in_place : {false, true})
          expect_right({plan, count, ElementKind::float32, ReduceOp::sum, in_place});
      }
    }
  }
}

TEST_P(ExecuteEveryAlgorithm, GivesTheExactResultForEveryKindAndOperation) {
  for (const int ranks : {3, 4}) {
    for (const ElementKind kind : kElementKinds) {
      for (const ReduceOp op : kReduceOps) {
        for (const bool in_place : {false, true}) {
          const Plan plan{GetParam(), {ranks}, {}, 2, {256}};
          expect_right({plan, 3 * Payload::kPeriod + 1, kind, op, in_place});
        }
      }
    }
  }
}

TEST_P(ExecuteEveryAlgorithm, GivesTheSameBitsOnAllRanksAndFromRunToRun) {
  // Fractions of any size: the order of the additions shows in the last bits.
  const int ranks = 6;
  const Count count = 1000;
  const Plan plan{GetParam(), {ranks}, {}, 2, {512}};
  std::vector<std::vector<float>> first;
  for (int repetition = 0; repetition < 5; ++repetition) {
    std::vector<std::vector<float>> outputs(ranks, std::vector<float>(count));
    run_ranks(ranks, [&](ThreadTransport& transport) {
      std::mt19937 random(static_cast<unsigned>(transport.rank()));
      std::vector<float> input(count);
      for (float& value : input)
        value = std::ldexp(static_cast<float>(random()), -static_cast<int>(random() % 32));
      Executor executor(make_schedule(plan, ranks, count, 4), ElementKind::float32, ReduceOp::sum, transport);
      executor.run(reinterpret_cast<const std::byte*>(input.data()),
                   reinterpret_cast<std::byte*>(outputs[static_cast<std::size_t>(transport.rank())].data()));
    });
    for (const std::vector<float>& output : outputs) EXPECT_EQ(output, outputs.front());
    if (repetition == 0) first = outputs;
    EXPECT_EQ(outputs, first);
  }
}

/// Both would cost time or memory, and change no result.
TEST_P(ExecuteEveryAlgorithm, WidensNoInputTwiceAndHasPartialResultsOnlyWhereTheyAreApart) {
  for (const int ranks : {1, 3, 4, 6, 8}) {
    for (const Plan& plan : plans_of(find_algorithm(GetParam()), ranks, 4)) {
      const Schedule schedule = make_schedule(plan, ranks, 7 * ranks + 3, 4);
      for (Rank rank = 0; rank < ranks; ++rank) {
        for (const bool reach : {false, true}) {
          const auto reaches = [&](Rank) { return reach; };
          const Stream stream{static_cast<int>(schedule.lanes.size()) - 1, 0};
          EXPECT_FALSE(compile(schedule, stream, rank, reaches, Partials::in_output).has_partials);
          const Program program = compile(schedule, stream, rank, reaches, Partials::apart);
          Intervals widened;
          for (const Program::Step& step : program.steps) {
            for (const Slice slice : step.widen) {
              EXPECT_THAT(widened.gaps(slice), ::testing::ElementsAre(slice)) << to_text(plan);
              widened.add(slice);
            }
          }
        }
      }
    }
  }
}

constexpr ElementKind kFloats[] = {ElementKind::float32, ElementKind::float64, ElementKind::float16,
                                   ElementKind::bfloat16};

/// Special values of every kind and operation: each rank must have the one right result, to the bit,
/// whichever rank combined which operands in whatever order.
void expect_right_of_special_values(std::span<const Plan> plans) {
  const int ranks = plans.front().ranks();
  constexpr Count kCount = Payload::kPeriod + 13;
  for (const ElementKind kind : kFloats) {
    for (const ReduceOp op : kReduceOps) {
      const Payload payload(kind, op, ranks, PayloadValues::special);
      const std::size_t bytes = kCount * static_cast<std::size_t>(size_of(kind));
      run_ranks(ranks, [&](ThreadTransport& transport) {
        std::vector<std::byte> input(bytes);
        std::vector<std::byte> output(bytes);
        payload.fill(transport.rank(), input.data(), kCount);
        for (const Plan& plan : plans) {
          for (const Partials partials : {Partials::apart, Partials::in_output}) {
            Executor executor(make_schedule(plan, ranks, kCount, size_of(kind)), kind, op, transport,
                              {.partials = partials});
            executor.run(input.data(), output.data());
            EXPECT_EQ(payload.wrong(output.data(), kCount), 0)
                << to_text(plan) << ", " << to_text(op) << " of " << to_text(kind) << ", on rank "
                << transport.rank();
          }
        }
      });
    }
  }
}

/// 0, 2, 4, …, 1, 3, 5, … and the same from the end.
std::vector<std::vector<int>> orders_of(int ranks) {
  std::vector<int> order;
  for (const int first : {0, 1}) {
    for (int rank = first; rank < ranks; rank += 2) order.push_back(rank);
  }
  return {order, {order.rbegin(), order.rend()}};
}

TEST_P(ExecuteEveryAlgorithm, GivesTheSameBitsOfSpecialValuesOnAllRanks) {
  for (const int ranks : {1, 2, 3, 4, 8}) {
    std::vector<Plan> plans;
    for (const int lanes : {1, 2, 3}) plans.push_back({GetParam(), {ranks}, {}, lanes, {}});
    if (find_algorithm(GetParam()).lanes_differ && ranks > 2)
      plans.push_back({GetParam(), {ranks}, {}, 3, {}, orders_of(ranks)});
    expect_right_of_special_values(plans);
  }
}

TEST(Executor, EveryPatternGivesTheSameBitsOfSpecialValuesOnAllRanks) {
  for (const int ranks : {4, 6, 8, 16}) {
    std::vector<Plan> plans;
    for (const std::string_view pattern : pattern_names()) {
      const std::string name(pattern);
      for (const int lanes : {1, 2, 3}) {
        plans.push_back({"multi-ring", {ranks}, {name}, lanes, {}});
        plans.push_back({"multi-ring", {ranks}, {name}, lanes, {}, orders_of(ranks)});
      }
      plans.push_back({"multi-ring", {2, ranks / 2}, {name, name}, 3, {}});
    }
    expect_right_of_special_values(plans);
  }
}

INSTANTIATE_TEST_SUITE_P(Catalogue, ExecuteEveryAlgorithm, ::testing::ValuesIn(testing::algorithm_names()),
                         [](const auto& row) { return testing::identifier(row.param); });

TEST(Executor, RunsManyTimesAndWithAnyWindow) {
  for (const int window : {1, 2, 16}) {
    const Payload payload(ElementKind::int32, ReduceOp::sum, 4);
    run_ranks(4, [&](ThreadTransport& transport) {
      const Schedule schedule = make_schedule({"multi-ring", {2, 2}, {}, 2, {64}}, 4, 1234, 4);
      Executor executor(schedule, ElementKind::int32, ReduceOp::sum, transport, {window});
      std::vector<std::byte> input(1234 * 4);
      std::vector<std::byte> output(1234 * 4);
      payload.fill(transport.rank(), input.data(), 1234);
      for (int i = 0; i < 20; ++i) {
        std::fill(output.begin(), output.end(), std::byte{0xff});
        executor.run(input.data(), output.data());
        EXPECT_EQ(payload.wrong(output.data(), 1234), 0);
      }
    });
  }
}

/// Hands back tickets one at a time, late and out of order, as a device or a network may, and counts bytes.
class LateTransport : public testing::ForwardingTransport {
 public:
  LateTransport(Transport& inner, unsigned seed) : ForwardingTransport(inner), random_(seed) {}

  void send(Rank to, int tag, std::span<const std::byte> data, Ticket ticket) override {
    sent_ += static_cast<Count>(data.size());
    ForwardingTransport::send(to, tag, data, ticket);
  }
  Count sent() const { return sent_; }
  void wait(std::vector<Ticket>& done) override {
    // To wait while holding a ticket back could be a deadlock of this test's own making.
    if (held_.empty()) ForwardingTransport::wait(held_);
    std::swap(held_[random_() % held_.size()], held_.back());
    done.push_back(held_.back());
    held_.pop_back();
  }

 private:
  std::mt19937 random_;
  std::vector<Ticket> held_;
  Count sent_ = 0;
};

TEST(Executor, AssumesNothingOfWhenOperationsComplete) {
  for (const std::string& algorithm : testing::algorithm_names()) {
    for (unsigned seed = 0; seed < 10; ++seed) {
      const Payload payload(ElementKind::float32, ReduceOp::avg, 6);
      run_ranks(6, [&](ThreadTransport& threads) {
        LateTransport transport(threads, seed * 100 + static_cast<unsigned>(threads.rank()));
        const Schedule schedule = make_schedule({algorithm, {6}, {}, 2, {100}}, 6, 333, 4);
        Executor executor(schedule, ElementKind::float32, ReduceOp::avg, transport);
        std::vector<std::byte> input(333 * 4);
        std::vector<std::byte> output(333 * 4, std::byte{0xff});
        payload.fill(transport.rank(), input.data(), 333);
        executor.run(input.data(), output.data());
        EXPECT_EQ(payload.wrong(output.data(), 333), 0) << algorithm << ", seed " << seed;
      });
    }
  }
}

/// The bytes that each rank sends in one allreduce, which must be right.
std::vector<Count> sent_by_ranks(const Plan& plan, Count count, ElementKind kind, ReduceOp op,
                                 Partials partials) {
  const int ranks = plan.ranks();
  std::vector<Count> sent(static_cast<std::size_t>(ranks));
  run_ranks(ranks, [&](ThreadTransport& threads) {
    LateTransport transport(threads, 1);
    const Payload payload(kind, op, ranks);
    Executor executor(make_schedule(plan, ranks, count, size_of(kind)), kind, op, transport,
                      {.partials = partials});
    std::vector<std::byte> data(bytes_of(count, kind).value);
    payload.fill(transport.rank(), data.data(), count);
    executor.run(data.data(), data.data());
    EXPECT_EQ(payload.wrong(data.data(), count), 0) << to_text(plan);
    sent[static_cast<std::size_t>(transport.rank())] = transport.sent();
  });
  return sent;
}

TEST(Executor, SendsPartialSumsOfHalvesAsFloat32UnlessToldOtherwise) {
  // A ring of four sends a quarter in each of six steps: inputs, twice partial sums, and thrice what is
  // complete.
  const auto sent = [](ElementKind kind, ReduceOp op, Partials partials) {
    return sent_by_ranks({"ring", {4}, {}, 1, {}}, 400, kind, op, partials).front();
  };
  for (const ElementKind kind : {ElementKind::float16, ElementKind::bfloat16}) {
    EXPECT_EQ(sent(kind, ReduceOp::avg, Partials::apart), 200 + 2 * 400 + 3 * 200);
    EXPECT_EQ(sent(kind, ReduceOp::avg, Partials::in_output), 6 * 200);
    EXPECT_EQ(sent(kind, ReduceOp::max, Partials::apart), 6 * 200) << "which rounds nothing";
  }
  EXPECT_EQ(sent(ElementKind::float32, ReduceOp::sum, Partials::apart), 6 * 400);
}

/// What is planned, priced and simulated is what is sent.
TEST_P(ExecuteEveryAlgorithm, SendsAsManyBytesAsTheScheduleSays) {
  for (const int ranks : {3, 4, 6}) {
    for (const Plan& plan : plans_of(find_algorithm(GetParam()), ranks, 2)) {
      for (const ElementKind kind : {ElementKind::float32, ElementKind::bfloat16}) {
        const Count count = 7 * ranks + 3;
        const std::vector<Count> sent = sent_by_ranks(plan, count, kind, ReduceOp::sum, Partials::apart);
        const Schedule schedule = make_schedule(plan, ranks, count, size_of(kind));
        for (Rank rank = 0; rank < ranks; ++rank) {
          EXPECT_EQ(sent[static_cast<std::size_t>(rank)], work_of(schedule, rank, {kind, ReduceOp::sum}).sent)
              << to_text(plan) << " of " << to_text(kind) << ", rank " << rank;
        }
      }
    }
  }
}

/// Fails when there is something to combine, with messages under way.
class FailingTransport final : public LateTransport {
 public:
  explicit FailingTransport(Transport& inner) : LateTransport(inner, 1) {}
  void combine(const Reduction&, std::byte*, std::span<const std::byte* const>, Count, Ticket) override {
    throw Error(ExitCode::internal, "out of luck");
  }
  void abandon() override {
    LateTransport::abandon();
    ++abandoned;
  }
  int abandoned = 0;
};

TEST(Executor, LeavesNothingInFlightWhenItFails) {
  try {
    run_ranks(3, [&](ThreadTransport& threads) {
      FailingTransport transport(threads);
      const Schedule schedule = make_schedule({"ring", {3}, {}, 1, {}}, 3, 300, 4);
      Executor executor(schedule, ElementKind::float32, ReduceOp::sum, transport);
      std::vector<std::byte> data(1200);
      EXPECT_THROW(executor.run(data.data(), data.data()), Error);
      EXPECT_EQ(transport.abandoned, 1) << "before anything is freed";
      EXPECT_THAT(threads.awaited(), ::testing::IsEmpty());
      throw Error(ExitCode::internal, "out of luck");
    });
  } catch (const Error&) {  // by one rank; the others may have heard of it meanwhile
  }
}

/// Counts the streams of which messages have been started when it is first waited.
class CountingTransport final : public LateTransport {
 public:
  explicit CountingTransport(Transport& inner) : LateTransport(inner, 1) {}
  void receive(Rank from, int tag, std::span<std::byte> data, Ticket ticket) override {
    tags_.insert(tag);
    LateTransport::receive(from, tag, data, ticket);
  }
  void wait(std::vector<Ticket>& done) override {
    if (at_first_ == 0) at_first_ = tags_.size();
    LateTransport::wait(done);
  }
  std::size_t at_first() const { return at_first_; }

 private:
  std::set<int> tags_;
  std::size_t at_first_ = 0;
};

TEST(Executor, HasAWindowOfEveryLaneInFlight) {
  constexpr Count kCount = 6000;  // in 15 chunks of each of two lanes, or 10 of each of three
  for (const int lanes : {1, 2, 3}) {
    for (const int window : {1, 4, 100}) {
      run_ranks(2, [&](ThreadTransport& threads) {
        CountingTransport transport(threads);
        const Schedule schedule = make_schedule({"ring", {2}, {}, lanes, {800}}, 2, kCount, 4);
        std::size_t streams = 0;
        for (const Lane& lane : schedule.lanes) streams += static_cast<std::size_t>(lane.chunks);
        Executor executor(schedule, ElementKind::float32, ReduceOp::sum, transport, {window});
        std::vector<std::byte> data(kCount * 4);
        executor.run(data.data(), data.data());
        EXPECT_EQ(transport.at_first(), std::min(streams, static_cast<std::size_t>(lanes * window)))
            << lanes << " lanes, window " << window;
      });
    }
  }
}

TEST(Executor, OfARankThatFailsTheOthersHearAboutIt) {
  try {
    run_ranks(4, [&](ThreadTransport& transport) {
      if (transport.rank() == 2) throw Error(ExitCode::internal, "out of luck");
      const Schedule schedule = make_schedule({"ring", {4}, {}, 1, {}}, 4, 100, 4);
      Executor executor(schedule, ElementKind::float32, ReduceOp::sum, transport);
      std::vector<std::byte> data(400);
      executor.run(data.data(), data.data());
      ADD_FAILURE() << "rank " << transport.rank() << " finished";
    });
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "out of luck");
  }
}

TEST(Executor, GivesUpOnARankThatNeverComes) {
  try {
    run_ranks(
        2,
        [&](ThreadTransport& transport) {
          if (transport.rank() == 1) return;
          const Schedule schedule = make_schedule({"ring", {2}, {}, 1, {}}, 2, 100, 4);
          Executor executor(schedule, ElementKind::float32, ReduceOp::sum, transport);
          std::vector<std::byte> data(400);
          executor.run(data.data(), data.data());
        },
        Seconds{0.05});
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::timeout);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("rank 0 waited 50.0 ms in vain for rank 1"));
  }
}

TEST(Executor, RefusesAScheduleForOtherRanks) {
  run_ranks(2, [](ThreadTransport& transport) {
    const auto make = [&](int ranks, int window) {
      Executor(make_schedule({"ring", {ranks}}, ranks, 100, 4), ElementKind::float32, ReduceOp::sum,
               transport, {.window = window});
    };
    EXPECT_THROW(make(3, 1), Error);
    EXPECT_THROW(make(1, 1), Error);
    EXPECT_THROW(make(2, 0), Error);
    EXPECT_NO_THROW(make(2, 1));
  });
}

TEST(Executor, ReducesMoreThanTwoToThe31Elements) {
  if (kSanitized) GTEST_SKIP() << "takes minutes under a sanitizer; the plain build runs it";
  const Count count = (Count{1} << 31) + 5;
  const auto bytes = static_cast<std::size_t>(count) * 2;
  if (testing::available_memory() < 3 * bytes) GTEST_SKIP() << "needs 13 GB of free memory";
  const Payload payload(ElementKind::bfloat16, ReduceOp::max, 2);
  run_ranks(2, [&](ThreadTransport& transport) {
    const Schedule schedule = make_schedule({"multi-ring", {2}, {}, 1, {64 << 20}}, 2, count, 2);
    Executor executor(schedule, ElementKind::bfloat16, ReduceOp::max, transport);
    const Memory data = transport.allocate({bytes});
    payload.fill(transport.rank(), data.get(), count);
    executor.run(data.get(), data.get());
    EXPECT_EQ(payload.wrong(data.get(), count), 0);
  });
}

TEST(Intervals, KnowWhatIsMissing) {
  Intervals set;
  EXPECT_THAT(set.gaps({0, 10}), ::testing::ElementsAre(Slice{0, 10}));
  set.add({2, 3});
  set.add({7, 1});
  EXPECT_THAT(set.gaps({0, 10}), ::testing::ElementsAre(Slice{0, 2}, Slice{5, 2}, Slice{8, 2}));
  EXPECT_THAT(set.gaps({3, 5}), ::testing::ElementsAre(Slice{5, 2}));
  set.add({5, 2});
  EXPECT_THAT(set.gaps({2, 6}), ::testing::IsEmpty());
  EXPECT_THAT(set.gaps({1, 3}), ::testing::ElementsAre(Slice{1, 1}));
  EXPECT_THAT(set.gaps({9, 0}), ::testing::IsEmpty());
}

}  // namespace
}  // namespace polyring
