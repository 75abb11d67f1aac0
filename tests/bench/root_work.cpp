// Run by time_limits_test.py, under mpirun or, with the number of ranks as a second argument, on threads:
// what one rank does while the others wait. The first argument says what. On rank 0: `long`, work for longer
// than the others would wait in silence; `endless`; `usage`, which fails. On rank 1: `stray`, an exception
// that the others do not know of; `absent`, where it does something else for ever.
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include "bench/session/collective.hpp"

namespace polyring {
namespace {

constexpr Seconds kTimeout{0.2};

ExitCode run(const std::string& what, World& world) {
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
  if (what == "stray" && world.rank() == 1) throw std::runtime_error("astray");
  if (what == "absent" && world.rank() == 1) std::this_thread::sleep_for(std::chrono::hours(1));
  if (what == "stray" || what == "absent") world.barrier();
  return ExitCode::ok;
}

}  // namespace
}  // namespace polyring

int main(int argc, char** argv) {
  const auto body = [&](polyring::World& world, polyring::Watchdog&) {
    return polyring::run(argv[1], world);
  };
  return static_cast<int>(argc > 2 ? polyring::run_on_threads(std::atoi(argv[2]), polyring::kTimeout, body)
                                   : polyring::run_collectively(polyring::kTimeout, body));
}
