// Run under mpirun with any number of ranks: MPI's and Gloo's own algorithms, compared with the exact result.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <vector>

#include "base/error.hpp"
#include "bench/contenders/gloo.hpp"
#include "bench/contenders/mpi.hpp"
#include "bench/measure/payload.hpp"
#include "tests/mpi_tests.hpp"

namespace polyring {
namespace {

using Maker = std::function<std::unique_ptr<CollectiveCall>(ElementKind, ReduceOp, Count)>;

const MpiWorld& world() { return testing::all_ranks(); }

constexpr Count kFractions = 10007;

/// Out of place, in place, and out of place again.
void check(CollectiveCall& allreduce, ElementKind kind, ReduceOp op, Count count) {
  constexpr std::byte kUntouched{0x5a};
  const auto bytes = static_cast<std::ptrdiff_t>(count * size_of(kind));
  const Payload payload(kind, op, world().size());
  std::vector<std::byte> input(static_cast<std::size_t>(bytes) + 8, kUntouched);
  payload.fill(world().rank(), input.data(), count);
  const std::vector<std::byte> before = input;
  std::vector<std::byte> output(input.size());
  for (const bool in_place : {false, true, false}) {
    std::fill(output.begin(), output.end(), kUntouched);
    if (in_place) std::copy_n(input.begin(), bytes, output.begin());
    allreduce.run(in_place ? output.data() : input.data(), output.data());
    const Count wrong = payload.wrong(output.data(), count);
    const bool within =
        std::all_of(output.begin() + bytes, output.end(), [&](std::byte byte) { return byte == kUntouched; });
    EXPECT_TRUE(wrong == 0 && within && input == before)
        << fmt::format("{}: {} {} {}{}: {} wrong{}{}", allreduce.algorithm(), count, to_text(kind),
                       to_text(op), in_place ? " in place" : "", wrong, within ? "" : ", wrote past the end",
                       input == before ? "" : ", wrote into the input");
  }
}

std::vector<float> sum_of_fractions(CollectiveCall& allreduce) {
  std::vector<float> input(kFractions);
  std::vector<float> output(kFractions);
  for (std::size_t i = 0; i < input.size(); ++i) {
    input[i] = 1.0F / static_cast<float>(3 + 7 * world().rank() + static_cast<int>(i % 97));
  }
  allreduce.run(reinterpret_cast<const std::byte*>(input.data()),
                reinterpret_cast<std::byte*>(output.data()));
  return output;
}

std::vector<float> sum_of_fractions(MpiAlgorithms& algorithms, const std::string& name) {
  return sum_of_fractions(*algorithms.make(name, ElementKind::float32, ReduceOp::sum, kFractions));
}

void every_kind_and_operation(const std::string& name, const Maker& make) {
  for (const ElementKind kind : kElementKinds) {
    for (const ReduceOp op : kReduceOps) {
      for (const Count count : {0, 1, 7, 1000}) {
        const auto allreduce = make(kind, op, count);
        EXPECT_EQ(allreduce->algorithm(), name) << name + " calls itself " + allreduce->algorithm();
        check(*allreduce, kind, op, count);
      }
    }
  }
  const Count many = 1 << 20;  // beyond every eager limit
  check(*make(ElementKind::float32, ReduceOp::sum, many), ElementKind::float32, ReduceOp::sum, many);
}

/// Sums that depend on their order: only if the library does as it is told do two algorithms differ in
/// them.
void algorithms_are_in_force(MpiAlgorithms& algorithms) {
  const auto has = [&](const char* name) {
    const auto& names = algorithms.names();
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (world().size() < 3) return;  // sums of two have one order
  if (!has("ring") || !has("basic_linear"))
    GTEST_SKIP() << "this MPI has no ring and basic_linear, which sum in orders of their own";
  EXPECT_NE(sum_of_fractions(algorithms, "ring"), sum_of_fractions(algorithms, "basic_linear"))
      << "MPI's ring sums in the order of its basic_linear: the choice has no effect";
  EXPECT_EQ(sum_of_fractions(algorithms, "ring"), sum_of_fractions(algorithms, "ring"))
      << "MPI's ring does not sum twice in one order";
}

/// The choice of an algorithm is none for what follows.
void the_library_still_chooses(MpiAlgorithms& algorithms) {
  const auto sum = [&](CollectiveCall& allreduce) { return sum_of_fractions(allreduce); };
  const auto before = make_mpi_allreduce(world(), ElementKind::float32, ReduceOp::sum, kFractions);
  const std::vector<float> expected = sum(*before);
  for (const std::string& name : algorithms.names()) sum_of_fractions(algorithms, name);
  const auto after = make_mpi_allreduce(world(), ElementKind::float32, ReduceOp::sum, kFractions);
  EXPECT_TRUE(sum(*before) == expected && sum(*after) == expected)
      << "an algorithm stays in force for others";
}

TEST(MpiBaselines, AreKnown) {
  const MpiAlgorithms algorithms(world());
  EXPECT_EQ(algorithms.why_none(), "");
  EXPECT_GE(algorithms.names().size(), 4U) << "the library has few algorithms";
}

TEST(MpiBaselines, LeaveTheLibraryItsChoice) {
  MpiAlgorithms algorithms(world());
  the_library_still_chooses(algorithms);
}

TEST(MpiBaselines, AreInForce) {
  MpiAlgorithms algorithms(world());
  algorithms_are_in_force(algorithms);
}

TEST(MpiBaselines, ReduceEveryKindAndOperation) {
  MpiAlgorithms algorithms(world());
  for (const std::string& name : algorithms.names()) {
    every_kind_and_operation("mpi:" + name, [&](ElementKind kind, ReduceOp op, Count count) {
      return algorithms.make(name, kind, op, count);
    });
  }
}

TEST(GlooBaselines, ReduceEveryKindAndOperation) {
  if (!has_gloo()) GTEST_SKIP() << "this build has no Gloo";
  Gloo gloo(world(), "", Seconds{60});
  for (const std::string& name : gloo_algorithms()) {
    every_kind_and_operation("gloo:" + name, [&](ElementKind kind, ReduceOp op, Count count) {
      return gloo.make(name, kind, op, count);
    });
  }
  world().idle_barrier();
}

/// The others wait for the last rank, which never comes: each must say so in time.
TEST(GlooBaselines, SayInTimeThatARankIsMissing) {
  if (!has_gloo()) GTEST_SKIP() << "this build has no Gloo";
  if (world().size() == 1) return;
  for (const std::string& name : gloo_algorithms()) {
    Gloo gloo(world(), "", Seconds{1});
    const auto allreduce = gloo.make(name, ElementKind::float32, ReduceOp::sum, 1000);
    std::vector<float> data(1000);
    if (world().rank() != world().size() - 1) {
      try {
        allreduce->run(reinterpret_cast<std::byte*>(data.data()), reinterpret_cast<std::byte*>(data.data()));
        ADD_FAILURE() << "gloo:" + name + " reduced without the last rank";
      } catch (const Error& error) {
        // One that ends first closes its connections to the others.
        const bool closed = std::string_view(error.what()).find("by peer") != std::string_view::npos;
        EXPECT_TRUE(error.code() == ExitCode::timeout || closed) << error.what();
      }
    }
    world().idle_barrier();
  }
}

TEST(World, GathersOfUnequalLength) {
  const auto bytes_of = [](Rank rank) {
    return std::vector<std::byte>(static_cast<std::size_t>(3 * rank), static_cast<std::byte>(rank));
  };
  const auto all = world().allgather(bytes_of(world().rank()));
  bool right = all.size() == static_cast<std::size_t>(world().size());
  for (Rank rank = 0; right && rank < world().size(); ++rank) {
    right = all[static_cast<std::size_t>(rank)] == bytes_of(rank);
  }
  EXPECT_TRUE(right) << "allgather() is wrong";
}

}  // namespace
}  // namespace polyring
