// Runner: when runs begin, and what is known of them afterwards.
#include "collectives/runtime/runner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "collectives/runtime/transports/threads.hpp"
#include "collectives/schedule/catalogue.hpp"
#include "tests/collectives/collective_case.hpp"
#include "tests/collectives/forwarding_transport.hpp"

namespace polyring {
namespace {

using testing::Case;
using ::testing::ElementsAre;
using testing::order_of;

/// Has few tags, so that runs share them.
class FewTags final : public testing::ForwardingTransport {
 public:
  FewTags(Transport& transport, int tags) : ForwardingTransport(transport), tags_(tags) {}

  int tags() const override { return tags_; }
  void send(Rank to, int tag, std::span<const std::byte> data, Ticket ticket) override {
    EXPECT_LT(tag, tags_);
    sent.insert(tag);
    ForwardingTransport::send(to, tag, data, ticket);
  }

  std::set<int> sent;

 private:
  int tags_;
};

std::unique_ptr<Executor> ring_of(int ranks, int lanes, Transport& transport) {
  const Plan plan{"ring", {ranks}, {}, lanes};
  return std::make_unique<Executor>(make_schedule(plan, ranks, 100, 8), ElementKind::int64, ReduceOp::sum,
                                    transport);
}

/// Rank 0 alone starts them: none of them ends, and those that begin send.
TEST(Runner, BeginsRunsThatShareNoTag) {
  run_ranks(2, [](ThreadTransport& threads) {
    FewTags transport(threads, 10);
    Runner runner(transport);
    std::vector<std::unique_ptr<Executor>> executors;
    std::vector<Case> cases;
    for (const int lanes : {1, 3, 1, 4}) {
      executors.push_back(ring_of(2, lanes, transport));
      cases.emplace_back(Collective::allreduce, 100, 1, threads.rank(), 2);
    }
    if (threads.rank() == 1) return;
    for (std::size_t at = 0; at < executors.size(); ++at)
      runner.start(*executors[at], cases[at].input(), cases[at].output());
    EXPECT_THAT(transport.sent, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
    EXPECT_THROW(runner.fail([] { throw Error(ExitCode::internal, "over"); }), Error);
  });
}

TEST(Runner, KnowsAfterAFailureWhatWasOverBefore) {
  run_ranks(2, [](ThreadTransport& threads) {
    Runner runner(threads);
    const auto first = ring_of(2, 1, threads);
    const auto second = ring_of(2, 1, threads);
    Case one(Collective::allreduce, 100, 1, threads.rank(), 2);
    Case other(Collective::allreduce, 100, 2, threads.rank(), 2);
    const Runner::Run over = runner.start(*first, one.input(), one.output());
    runner.wait(over);
    if (threads.rank() == 1) return;
    const Runner::Run failed = runner.start(*second, other.input(), other.output());
    EXPECT_THROW(runner.fail([] { throw Error(ExitCode::internal, "out of luck"); }), Error);
    EXPECT_TRUE(runner.is_over(over));
    EXPECT_THROW(runner.is_over(failed), Error);
    EXPECT_THROW(runner.wait(failed), Error);
  });
}

TEST(Runner, HasRunsThatShareTagsFollowOneAnother) {
  constexpr int kRanks = 3;
  constexpr int kLanes = 3;
  constexpr std::size_t kRuns = 50;
  // In turn no two, two, or all but one run may be in flight.
  for (const int tags : {kLanes, 2 * kLanes, 2 * kLanes + 1, 40 * kLanes}) {
    run_ranks(kRanks, [&](ThreadTransport& threads) {
      FewTags transport(threads, tags);
      Runner runner(transport);
      std::vector<Case> cases;
      std::vector<std::unique_ptr<Executor>> executors;
      std::vector<Runner::Run> runs;
      for (std::uint64_t seed = 0; seed < kRuns; ++seed) {
        cases.emplace_back(Collective::allreduce, 100, seed, threads.rank(), kRanks);
        executors.push_back(ring_of(kRanks, kLanes, transport));
      }
      for (std::size_t at = 0; at < kRuns; ++at)
        runs.push_back(runner.start(*executors[at], cases[at].input(), cases[at].output()));
      for (const std::size_t at : order_of(kRuns, threads.rank())) {
        runner.wait(runs[at]);
        EXPECT_TRUE(runner.is_over(runs[at]));
        EXPECT_TRUE(cases[at].is_right()) << cases[at].name() << ", " << tags << " tags";
      }
    });
  }
}

}  // namespace
}  // namespace polyring
