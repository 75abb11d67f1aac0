// The training step against closed forms, and properties that hold for every model and policy.
#include "models/step.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "tests/models/catalogue_names.hpp"

namespace polyring {
namespace {

const StepCompute compute{{1.0}, {2.0}, {0.5}};

std::vector<Bucket> buckets_ready_at(const std::vector<double>& fractions) {
  std::vector<Bucket> buckets;
  for (std::size_t i = 0; i < fractions.size(); ++i) buckets.push_back({i, 1, 1, fractions[i]});
  return buckets;
}

auto constant(double seconds) {
  return [seconds](std::size_t) { return Seconds{seconds}; };
}

/// An α–β price, with 4 bytes per element.
auto priced(const std::vector<Bucket>& buckets, double latency, double bytes_per_second) {
  return [&buckets, latency, bytes_per_second](std::size_t i) {
    return Seconds{latency + 4.0 * static_cast<double>(buckets[i].elements) / bytes_per_second};
  };
}

TEST(ComputeOf, SplitsByTheModelsFlops) {
  for (const ModelInfo& info : model_catalogue()) {
    const StepCompute split = compute_of(make_model(info.name), {3.0}, {0.25});
    EXPECT_NEAR(split.forward.value, 1.0, 0.02) << info.name;
    EXPECT_DOUBLE_EQ(split.forward.value + split.backward.value, 3.0);
    EXPECT_EQ(split.optimizer.value, 0.25);
  }
  const Model model{"m", "", {{"a", {1}, 10.0}}, 30.0};
  EXPECT_DOUBLE_EQ(compute_of(model, {4.0}).forward.value, 3.0);
}

TEST(ReleaseTimes, FollowBackwardWithOverlapAndItsEndWithout) {
  const auto buckets = buckets_ready_at({0.25, 0.5, 1.0});
  EXPECT_THAT(release_times(compute, buckets, true),
              testing::ElementsAre(Seconds{1.5}, Seconds{2.0}, Seconds{3.0}));
  EXPECT_THAT(release_times(compute, buckets, false), testing::Each(Seconds{3.0}));
}

TEST(RunStep, WithoutOverlapIsComputePlusTheSum) {
  const auto buckets = buckets_ready_at({0.25, 0.5, 1.0});
  const Step step = run_step(compute, buckets, false, constant(0.7));
  EXPECT_DOUBLE_EQ(step.total().value, 3.5 + 3 * 0.7);
  EXPECT_DOUBLE_EQ(step.exposed_communication().value, 3 * 0.7);
}

TEST(RunStep, WithShortAllreducesExposesOnlyTheLastBucket) {
  const auto buckets = buckets_ready_at({0.25, 0.5, 0.75, 1.0});
  const Step step = run_step(compute, buckets, true, constant(0.4));
  EXPECT_DOUBLE_EQ(step.exposed_communication().value, 0.4);
  EXPECT_DOUBLE_EQ(step.total().value, 3.5 + 0.4);
}

TEST(RunStep, WithLongAllreducesIsBoundByTheStream) {
  const auto buckets = buckets_ready_at({0.25, 0.5, 0.75, 1.0});
  const Step step = run_step(compute, buckets, true, constant(5.0));
  EXPECT_DOUBLE_EQ(step.total().value, 1.5 + 4 * 5.0 + 0.5);  // from the first release on
}

TEST(RunStep, WaitsForReleaseAndForTheStream) {
  const auto buckets = buckets_ready_at({0.1, 0.2, 1.0});
  const Step step =
      run_step(compute, buckets, true, [](std::size_t i) { return Seconds{i == 0 ? 1.0 : 0.1}; });
  EXPECT_DOUBLE_EQ(step.buckets[0].communication.begin.value, 1.2);
  EXPECT_DOUBLE_EQ(step.buckets[1].ready.value, 1.4);
  EXPECT_DOUBLE_EQ(step.buckets[1].communication.begin.value, 2.2);  // behind bucket 0
  EXPECT_DOUBLE_EQ(step.buckets[2].communication.begin.value, 3.0);  // idle until released
  EXPECT_DOUBLE_EQ(step.optimizer.begin.value, 3.1);
  EXPECT_EQ(step.buckets[2].bucket, 2u);
}

TEST(RunStep, WithoutCommunicationTakesTheComputeTime) {
  const Step nothing = run_step(compute, {}, true, constant(1.0));
  EXPECT_DOUBLE_EQ(nothing.total().value, compute.total().value);
  EXPECT_EQ(nothing.exposed_communication().value, 0);
  const Step free = run_step({{0.1}, {0.2}, {0.3}}, buckets_ready_at({0.3, 1.0}), true, constant(0));
  EXPECT_EQ(free.exposed_communication().value, 0);
}

/// A model and a bucket policy.
using Case = std::tuple<std::string, std::string>;

class StepOf : public testing::TestWithParam<Case> {
 protected:
  const Model model = make_model(std::get<0>(GetParam()));
  const std::vector<Bucket> buckets = make_buckets(model, parse_bucket_policy(std::get<1>(GetParam())), 4);
};

TEST_P(StepOf, KeepsItsOrder) {
  const Step step = run_step(compute, buckets, true, priced(buckets, 1e-5, 1e9));
  ASSERT_EQ(step.buckets.size(), buckets.size());
  Seconds before;
  for (const BucketTimes& times : step.buckets) {
    EXPECT_GE(times.communication.begin, times.ready);
    EXPECT_GE(times.communication.begin, before);
    before = times.communication.end;
  }
  EXPECT_GE(step.optimizer.begin, before);
  EXPECT_GE(step.optimizer.begin, step.backward.end);
}

TEST_P(StepOf, IsNeverSlowerWithOverlapNorFasterThanItsBounds) {
  for (const double bandwidth : {1e8, 1e9, 1e10, 1e12}) {
    const auto price = priced(buckets, 1e-5, bandwidth);
    double sum = 0;
    for (std::size_t i = 0; i < buckets.size(); ++i) sum += price(i).value;
    const double overlapped = run_step(compute, buckets, true, price).total().value;
    const double serial = run_step(compute, buckets, false, price).total().value;
    EXPECT_NEAR(serial, compute.total().value + sum, 1e-9 * serial);
    EXPECT_LE(overlapped, serial * (1 + 1e-12));
    EXPECT_GE(overlapped, (compute.total() + price(buckets.size() - 1)).value * (1 - 1e-12));
    EXPECT_GE(overlapped, (compute.forward.value + sum + compute.optimizer.value) * (1 - 1e-12));
  }
}

TEST_P(StepOf, GrowsWithTheAllreduceTime) {
  double before = 0;
  for (const double bandwidth : {1e12, 1e11, 1e10, 1e9, 1e8}) {
    const double total = run_step(compute, buckets, true, priced(buckets, 1e-6, bandwidth)).total().value;
    EXPECT_GT(total, before);
    before = total;
  }
}

TEST(Interplay, ALaunchDelaysWhatIsReleased) {
  const auto buckets = buckets_ready_at({0.5, 1.0});
  const Step step = run_step(compute, buckets, true, constant(0.1), {{0.25}, 0});
  EXPECT_DOUBLE_EQ(step.buckets[0].communication.begin.value, 2.25);
  EXPECT_DOUBLE_EQ(step.buckets[1].communication.begin.value, 3.25);
  EXPECT_DOUBLE_EQ(step.total().value, 3.35 + 0.5);
}

/// While the first allreduce runs for 0.6, computing does 0.6 / 1.2 = 0.5 of what is left.
TEST(Interplay, ComputingIsSlowerBesideAnAllreduce) {
  const auto buckets = buckets_ready_at({0.5, 1.0});
  const Step step = run_step(compute, buckets, true, constant(0.6), {{}, 0.2});
  EXPECT_DOUBLE_EQ(step.buckets[0].communication.end.value, 2.6);
  EXPECT_NEAR(step.backward.end.value, 3.1, 1e-12);
  EXPECT_NEAR(step.buckets[1].communication.begin.value, 3.1, 1e-12);
  EXPECT_NEAR(step.total().value, 3.7 + 0.5, 1e-12);
}

/// Two that follow each other slow it down together; what waits between them does not.
TEST(Interplay, EachAllreduceSlowsForItsOwnTime) {
  const auto buckets = buckets_ready_at({0.25, 0.5, 1.0});
  const Step step = run_step(compute, buckets, true, constant(0.3), {{0.1}, 0.5});
  // Released at 1.5; runs from 1.6 to 1.9, in which 0.2 are computed: at 1.9 there are 0.7 of 2 done; the
  // next at 2.1.
  EXPECT_NEAR(step.buckets[1].ready.value, 2.2 - 0.1, 1e-12);
  // It runs from 2.2 to 2.5: at 2.5 1.3 are done, and all at 3.2.
  EXPECT_NEAR(step.backward.end.value, 3.2, 1e-12);
}

TEST(Interplay, WithoutOverlapNothingIsSlowed) {
  const auto buckets = buckets_ready_at({0.25, 1.0});
  EXPECT_DOUBLE_EQ(run_step(compute, buckets, false, constant(0.7), {{}, 0.5}).total().value, 3.5 + 2 * 0.7);
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return as_test_name(std::get<0>(info.param) + "_" + std::get<1>(info.param));
}
INSTANTIATE_TEST_SUITE_P(ModelsAndPolicies, StepOf,
                         testing::Combine(testing::ValuesIn(catalogue_names()),
                                          testing::Values("none", "fused:25MiB", "fused:64MiB",
                                                          "per-tensor")),
                         case_name);

}  // namespace
}  // namespace polyring
