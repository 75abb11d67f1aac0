// What of a step's activities on a GPU goes into its profile.
#include <gmock/gmock.h>

#include "bench/measure/gpu_step.hpp"

namespace polyring {
namespace {

using Kind = GpuActivity::Kind;
using testing::DoubleEq;
using testing::DoubleNear;
using testing::Optional;

Span span(double begin_ms, double end_ms) { return {{begin_ms * 1e-3}, {end_ms * 1e-3}}; }

GpuActivity activity(Kind kind, double begin_ms, double end_ms) {
  return {kind, {begin_ms * 1e-3}, {end_ms * 1e-3}};
}

/// 100 ms of computation, two allreduces beside it and behind it, and the end at 150 ms.
Step step() {
  Step step;
  step.forward = span(0, 40);
  step.backward = span(40, 100);
  step.optimizer = span(150, 150);
  step.buckets = {{0, {0.06}, span(70, 90)}, {1, {0.1}, span(110, 140)}};
  return step;
}

auto share(const char* activity, double of_all, double time_ms, std::uint64_t calls) {
  return testing::AllOf(testing::Field("activity", &GpuShare::activity, activity),
                        testing::Field("share", &GpuShare::share, Optional(DoubleNear(of_all, 1e-9))),
                        testing::Field("time_ms", &GpuShare::time_ms, DoubleNear(time_ms, 1e-9)),
                        testing::Field("calls", &GpuShare::calls, calls));
}

auto idle(double time_ms) {
  return testing::AllOf(testing::Field(&GpuShare::activity, "idle"),
                        testing::Field(&GpuShare::share, std::nullopt),
                        testing::Field(&GpuShare::time_ms, DoubleNear(time_ms, 1e-9)));
}

TEST(GpuProfile, CountsEnqueuedCallsAsKernels) {
  EXPECT_THAT(shares_of(step(), 500, true, {}),
              testing::ElementsAre(share("computation", 100.0 / 150, 100, 500),
                                   share("kernels of allreduces", 50.0 / 150, 50, 2), idle(20)));
}

TEST(GpuProfile, ListsCopiesAndKernelsByTheirTimeAndCountsOverlapOnceWhereNothingIsDone) {
  const std::vector<GpuActivity> activities{
      activity(Kind::to_host, 90, 120), activity(Kind::to_gpu, 115, 135), activity(Kind::to_gpu, 135, 149),
      activity(Kind::kernel, 30, 31),   activity(Kind::on_gpu, 32, 34),   activity(Kind::kernel, 50, 50)};
  const double all = 100 + 30 + 34 + 1 + 2;
  EXPECT_THAT(shares_of(step(), 500, false, activities),
              testing::ElementsAre(share("computation", 100 / all, 100, 500),
                                   share("copies host to device", 34 / all, 34, 2),
                                   share("copies device to host", 30 / all, 30, 1),
                                   share("copies device to device", 2 / all, 2, 1),
                                   share("kernels of allreduces", 1 / all, 1, 1), idle(1)));
}

TEST(GpuProfile, KnowsWhichCopiesPassTheHost) {
  for (const GpuShare& of :
       shares_of(step(), 500, true, {activity(Kind::to_gpu, 1, 2), activity(Kind::on_gpu, 2, 3)}))
    EXPECT_EQ(is_host_copy(of.activity), of.activity == "copies host to device") << of.activity;
}

}  // namespace
}  // namespace polyring
