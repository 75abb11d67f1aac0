// Run under mpirun by time_limits_test.py: work of rank 0 for which the others wait. Its argument says which:
// `long`, for longer than the others would wait in silence; `endless`; `usage`, which fails.
#include <fmt/format.h>

#include <chrono>
#include <string>
#include <thread>

#include "bench/session/collective.hpp"

namespace polyring {
namespace {

constexpr Seconds kTimeout{0.2};

ExitCode run(const std::string& what, MpiWorld& world) {
  if (what == "usage") on_root(world, [] { usage_error("a mistake"); });
  if (what == "long") {
    std::string text;
    on_root(world, [&] {
      std::this_thread::sleep_for(std::chrono::duration<double>((kLeastLimit + Seconds{2}).value));
      text = "done";
    });
    world.barrier();
    if (world.rank() == 0) fmt::print("{}\n", text);
  }
  if (what == "endless") {
    on_root(
        world, [] { std::this_thread::sleep_for(std::chrono::hours(1)); }, Seconds{2});
  }
  return ExitCode::ok;
}

}  // namespace
}  // namespace polyring

int main(int, char** argv) {
  return static_cast<int>(polyring::run_collectively(
      polyring::kTimeout,
      [&](polyring::MpiWorld& world, polyring::Watchdog&) { return polyring::run(argv[1], world); }));
}
