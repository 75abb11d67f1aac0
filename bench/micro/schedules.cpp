// How long it takes to make, expand, prove and compile schedules.
#include <benchmark/benchmark.h>

#include "collectives/schedule/catalogue.hpp"
#include "collectives/schedule/program.hpp"
#include "collectives/schedule/verify.hpp"

namespace polyring {
namespace {

constexpr Count kResNet50 = 25557032;

Schedule ddl_shape() { return make_schedule({"multi-ring", {4, 8, 8}, {}, 8, {}}, 256, kResNet50, 4); }

void one_ranks_part(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(work_of(ddl_shape(), 133));
}
BENCHMARK(one_ranks_part)->Unit(benchmark::kMicrosecond);

void compile_one_rank(benchmark::State& state) {
  const Schedule schedule = ddl_shape();
  for (auto _ : state) {
    for (int lane = 0; lane < 8; ++lane)
      benchmark::DoNotOptimize(compile(schedule, {lane, 0}, 133, [](Rank) { return false; }));
  }
}
BENCHMARK(compile_one_rank)->Unit(benchmark::kMicrosecond);

void prove(benchmark::State& state) {
  const int ranks = static_cast<int>(state.range(0));
  const Schedule schedule = make_schedule({"multi-ring", {4, ranks / 4}, {}, 1, {}}, ranks, kResNet50, 4);
  for (auto _ : state) benchmark::DoNotOptimize(verify(schedule));
}
BENCHMARK(prove)->Arg(16)->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace polyring
