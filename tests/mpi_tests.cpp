// Rank 0 shows the tests' progress, and every rank its failures. An exception ends the job: the other ranks
// would wait for this one.
#include "tests/mpi_tests.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <exception>
#include <string>

namespace polyring::testing {
namespace {

/// Less than CTest gives the program, so that a rank can say whom it waits for.
constexpr Seconds kLimit{200};

MpiWorld* world = nullptr;  // of main()

std::string test_name() {
  const ::testing::TestInfo* test = ::testing::UnitTest::GetInstance()->current_test_info();
  return test == nullptr ? "between tests" : fmt::format("{}.{}", test->test_suite_name(), test->name());
}

/// Says which rank fails, and nothing else. At once: the job may be ended the hard way.
class Failures final : public ::testing::EmptyTestEventListener {
 public:
  void OnTestPartResult(const ::testing::TestPartResult& part) override {
    if (!part.failed()) return;
    fmt::print("rank {}, {}: {}:{}: {}\n", world->rank(), test_name(),
               part.file_name() == nullptr ? "" : part.file_name(), part.line_number(), part.message());
    std::fflush(stdout);
  }
};

/// Whether a test failed on any rank, or none was chosen.
bool run_tests() {
  auto& tests = *::testing::UnitTest::GetInstance();
  if (world->rank() > 0) {
    delete tests.listeners().Release(tests.listeners().default_result_printer());
    tests.listeners().Append(new Failures);
  }
  const bool failed = RUN_ALL_TESTS() != 0;
  if (tests.test_to_run_count() == 0) fmt::print("no test has such a name\n");
  return world->sum(failed || tests.test_to_run_count() == 0 ? 1 : 0) > 0;
}

}  // namespace

MpiWorld& all_ranks() { return *world; }

}  // namespace polyring::testing

int main(int argc, char** argv) {
  GTEST_FLAG_SET(catch_exceptions, false);
  ::testing::InitGoogleTest(&argc, argv);
  setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "1", 0);  // as MpiAlgorithms::allow()
  polyring::MpiWorld world;
  world.set_timeout(polyring::testing::kLimit);
  polyring::testing::world = &world;
  try {
    return polyring::testing::run_tests() ? 1 : 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {}, {}: {}\n", world.rank(), polyring::testing::test_name(), error.what());
    world.abort(1);
  }
}
