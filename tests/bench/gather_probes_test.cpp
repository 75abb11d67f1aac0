// What a host's first rank says of its probe, however that ends. That the ranks gather it: probe_mpi_test.py.
#include "bench/record/gather_probes.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "base/error.hpp"
#include "topology/inventory/formats/probe_json.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr Seconds kLimit{20};

Machine found() {
  Machine machine;
  machine.name = "node7";
  return machine;
}

TEST(ProbeOwnHost, GivesWhatWasFound) {
  const std::string message = probe_own_host(found, kLimit);
  EXPECT_EQ(message, "h" + probe_json(inventory_of(found())));
}

TEST(ProbeOwnHost, GivesTheReasonWhereNothingWas) {
  const auto fails = []() -> Machine { throw Error(ExitCode::not_available, "hwloc finds nothing"); };
  EXPECT_EQ(probe_own_host(fails, kLimit), "rhwloc finds nothing");
}

TEST(ProbeOwnHost, OutlivesAProbeThatCrashes) {
  const auto crashes = []() -> Machine {
    std::raise(SIGSEGV);
    return {};
  };
  EXPECT_THAT(probe_own_host(crashes, kLimit), AllOf(StartsWith("r"), HasSubstr("its probe crashed")));
}

TEST(ProbeOwnHost, WaitsNoLongerThanTheLimit) {
  const auto hangs = []() -> Machine {
    while (true) pause();
  };
  EXPECT_THAT(probe_own_host(hangs, {0.1}), AllOf(StartsWith("r"), HasSubstr("did not end within 100 ms")));
}

// A thread of a probe that reads the environment would crash MPI_Init, or be crashed by it.
TEST(ProbeOwnHost, ChangesNothingInThisProcess) {
  const auto changes = [] {
    setenv("POLYRING_TEST_OF_PROBES", "1", 1);
    return found();
  };
  EXPECT_THAT(probe_own_host(changes, kLimit), StartsWith("h"));
  EXPECT_EQ(getenv("POLYRING_TEST_OF_PROBES"), nullptr);
}

}  // namespace
}  // namespace polyring
