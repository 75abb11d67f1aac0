// Run under mpirun with any number of ranks: what the tuner finds among allreduces that take as long as their
// plan deserves, by a clock that they move on themselves, and err on purpose.
#include "bench/measure/tuner.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include "base/error.hpp"
#include "bench/contenders/mpi.hpp"
#include "bench/plans/job_planner.hpp"
#include "bench/plans/tuned_file.hpp"
#include "collectives/runtime/transports/mpi.hpp"
#include "tests/mpi_tests.hpp"

namespace polyring {
namespace {

constexpr Count kCount = 64 << 10;
constexpr std::size_t kBytes = kCount * sizeof(float);
const Plan kDefault{"multi-ring", {9}, {"ring"}, 1, {}};
const Plan kGrid{"multi-ring", {3, 3}, {"ring", "ring"}, 1, {}};

/// What the tuner measures with. Of each rank; all move it by the same.
std::chrono::steady_clock::time_point test_time;

std::chrono::steady_clock::time_point test_now() { return test_time; }

/// The right result, after a while.
class Slowed final : public CollectiveCall {
 public:
  Slowed(const MpiWorld& world, std::chrono::microseconds delay, Count spoiled)
      : honest_(make_mpi_allreduce(world, ElementKind::float32, ReduceOp::sum, kCount)),
        delay_(delay),
        spoiled_(spoiled) {}
  std::string algorithm() const override { return "slowed"; }
  std::string implementation() const override { return "test"; }
  bool keeps_time_limit() const override { return false; }
  void run(const std::byte* input, std::byte* output) override {
    honest_->run(input, output);
    std::memset(output, 0xff, static_cast<std::size_t>(spoiled_) * sizeof(float));
    test_time += delay_;
  }

 private:
  std::unique_ptr<CollectiveCall> honest_;
  std::chrono::microseconds delay_;
  Count spoiled_;
};

/// Measures by a clock that the contenders move on themselves.
class TunerTest : public ::testing::Test {
 protected:
  Tuner make_tuner(Tuner::Held held = [](const Plan&, Count) { return Bytes{}; }) {
    return {{world_, *transport_, watchdog_, &test_now}, 7, [](const std::string&) {}, std::move(held)};
  }

  Contender contender(int ms, Count spoiled) const {
    return {"slowed",
            {},
            std::make_unique<Slowed>(world_, std::chrono::milliseconds(ms), spoiled),
            Buffers{input_.get(), output_.get()}};
  }

  std::optional<TunerResult> tune(const std::function<int(const Plan&)>& ms) {
    return make_tuner().tune(kCount, {kDefault, kGrid},
                             [&](const Plan& plan) { return contender(ms(plan), 0); });
  }

  const MpiWorld& world_ = testing::all_ranks();
  std::unique_ptr<Transport> transport_ = make_mpi_transport(world_);
  Watchdog watchdog_{Seconds{60}, [this](const std::string& why) {
                       fmt::print("rank {}: {}\n", world_.rank(), why);
                       world_.abort(1);
                     }};
  Memory input_ = transport_->allocate(Bytes{kBytes});
  Memory output_ = transport_->allocate(Bytes{kBytes});
};

/// Each of its features saves 10 ms; the search must pass from one to the next.
TEST_F(TunerTest, FindsTheFastest) {
  const auto result = tune([](const Plan& plan) {
    int ms = 60;
    if (plan.dims.size() == 2) ms -= 10;
    if (plan.patterns.front() == "direct") ms -= 10;
    if (plan.patterns.back() == "direct") ms -= 10;
    if (plan.lanes == 2) ms -= 10;
    if (plan.chunk == Bytes{64 << 10}) ms -= 10;
    return ms;
  });
  const Plan best{"multi-ring", {3, 3}, {"direct", "direct"}, 2, {64 << 10}};
  EXPECT_TRUE(result && result->challenger == best)
      << fmt::format("chose {}", result ? to_text(result->challenger) : "nothing");
  EXPECT_TRUE(result && result->better()) << "a plan of a sixth of the time is not better";
  EXPECT_TRUE(result && result->default_us == 60e3 && result->challenger_us == 10e3)
      << "times are of other plans";
}

TEST_F(TunerTest, KeepsTheDefaultWhereOthersAreSlower) {
  const auto result = tune([](const Plan& plan) { return plan == kDefault ? 1 : 5; });
  EXPECT_TRUE(result && !result->better()) << "a slower plan is better than the default";
  EXPECT_TRUE(result && result->challenger != kDefault) << "the default is its own contender";
}

TEST_F(TunerTest, TellsWrongResults) {
  Tuner tuner = make_tuner();
  const auto result = tuner.tune(kCount, {kDefault, kGrid}, [&](const Plan& plan) {
    return contender(plan == kGrid ? 1 : 5, plan == kGrid ? 3 : 0);
  });
  EXPECT_FALSE(result) << "a plan is chosen although one was wrong";
  EXPECT_TRUE(tuner.wrong().size() == 1 && tuner.wrong().front().find("3x3") != std::string::npos)
      << "the wrong plan is not named";
}

/// On one rank only: all must leave it out.
TEST_F(TunerTest, DoesNotTryWhatHoldsTooMuch) {
  Tuner tuner = make_tuner([this](const Plan& plan, Count) {
    const bool much = plan.dims.size() == 2 && world_.rank() == world_.size() - 1;
    return much ? Tuner::round_memory(kCount) + Bytes{1} : Bytes{};
  });
  const auto result = tuner.tune(kCount, {kDefault, kGrid}, [&](const Plan& plan) {
    return contender(plan.dims.size() == 2 ? 1 : plan.lanes == 2 ? 3 : 5, 0);
  });
  EXPECT_TRUE(result && result->challenger.dims.size() == 1) << "what does not fit was tried";
  EXPECT_TRUE(result && result->better()) << "what fits was not tried";
}

/// polyring tune writes default plans into its file, and must be able to read them again.
TEST_F(TunerTest, CanKeepDefaultPlans) {
  const Communicator communicator(world_, over_mpi(world_, TransportChoice::network));
  const JobPlanner planner({}, world_);
  TuningPlace place;
  place.ranks = world_.size();
  place.nodes = 1;
  for (const Count count : {Count{1} << 10, (Count{1} << 28) + 1, Count{1} << 32}) {
    const std::string algorithm(kTunedAlgorithm);
    const Plan plan = planner.choose(planner.problem(algorithm, communicator, {.count = count}), {}).plan;
    const TunedPlan choice{place, Bytes{static_cast<std::uint64_t>(count) * sizeof(float)}, plan, true, 1, 1};
    try {
      EXPECT_EQ(parse_tuned(tuned_text(std::span(&choice, 1)), "it").size(), 1) << "a choice is lost";
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

}  // namespace
}  // namespace polyring
