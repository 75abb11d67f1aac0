// Rank 0 shows the tests' progress, and every rank its failures. An exception ends the job: the other ranks
// would wait for this one.
#include "tests/mpi_tests.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <exception>

namespace polyring::testing {
namespace {

constexpr Seconds kWholeSuite{300};

MpiWorld* world = nullptr;  // of run_tests()

/// Says which rank fails, and nothing else.
class Failures final : public ::testing::EmptyTestEventListener {
 public:
  void OnTestPartResult(const ::testing::TestPartResult& part) override {
    if (!part.failed()) return;
    const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
    fmt::print("rank {}, {}.{}: {}:{}: {}\n", world->rank(), test.test_suite_name(), test.name(),
               part.file_name() == nullptr ? "" : part.file_name(), part.line_number(), part.message());
  }
};

int run_tests() {
  MpiWorld of_main;
  of_main.set_timeout(kWholeSuite);
  world = &of_main;
  if (of_main.rank() > 0) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new Failures);
  }
  int failed = 1;
  try {
    failed = RUN_ALL_TESTS();
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {}: {}\n", of_main.rank(), error.what());
    of_main.abort(1);
  }
  return of_main.sum(failed) > 0 ? 1 : 0;
}

}  // namespace

MpiWorld& all_ranks() { return *world; }

}  // namespace polyring::testing

int main(int argc, char** argv) {
  GTEST_FLAG_SET(catch_exceptions, false);
  ::testing::InitGoogleTest(&argc, argv);
  return polyring::testing::run_tests();
}
