// Which rank has which GPU.
#include "bench/contenders/gpu_option.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace polyring {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// A rank on host a (0) or b (1) that sees these GPUs.
RankGpus rank(int host, std::vector<std::string> ids) {
  return {host, host == 0 ? "a" : "b", std::move(ids), {}};
}

std::string refusal(const std::vector<RankGpus>& ranks, const std::vector<int>& wanted, ExitCode code) {
  try {
    assign_gpus(ranks, wanted, false);
  } catch (const AgreedError& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  return "";
}

TEST(AssignedGpus, AreTakenInTurnOnEachHost) {
  const std::vector<RankGpus> ranks{rank(0, {"p", "q"}), rank(0, {"p", "q"}), rank(1, {"r", "s"}),
                                    rank(1, {"r", "s"})};
  EXPECT_THAT(assign_gpus(ranks, {}, false), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(assign_gpus(ranks, {1, 0}, false), ElementsAre(1, 0, 1, 0));
}

TEST(AssignedGpus, OfRanksThatSeeOnlyTheirOwn) {
  EXPECT_THAT(assign_gpus({rank(0, {"p"}), rank(0, {"q"}), rank(0, {"r"})}, {}, false), ElementsAre(0, 0, 0));
}

TEST(AssignedGpus, OnTwoHostsMayHaveOneName) {
  EXPECT_THAT(assign_gpus({rank(0, {"p"}), rank(1, {"p"})}, {}, false), ElementsAre(0, 0));
}

TEST(AssignedGpus, AreSharedWhereThatIsAllowed) {
  const std::vector<RankGpus> ranks(3, rank(0, {"p", "q"}));
  EXPECT_THAT(assign_gpus(ranks, {}, true), ElementsAre(0, 1, 0));
  EXPECT_THAT(refusal(ranks, {}, ExitCode::usage),
              HasSubstr("ranks 0 and 2 would have one GPU: a has 2 GPUs for 3 ranks"));
}

TEST(AssignedGpus, ThatOverlapAreRefused) {
  const std::vector<RankGpus> ranks{rank(0, {"p", "q"}), rank(0, {"p"})};
  EXPECT_THAT(refusal(ranks, {}, ExitCode::usage), HasSubstr("ranks 0 and 1 would have one GPU"));
}

TEST(AssignedGpus, OfHostsWithUnequallyManyAreRefusedWhereOneHasTooFew) {
  const std::vector<RankGpus> ranks{rank(0, {"p", "q"}), rank(0, {"p", "q"}), rank(1, {"r"}), rank(1, {"r"})};
  EXPECT_THAT(refusal(ranks, {}, ExitCode::usage), HasSubstr("b has 1 GPU for 2 ranks"));
}

TEST(AssignedGpus, ThatDoNotExistAreRefused) {
  EXPECT_THAT(refusal({rank(0, {"p"})}, {1}, ExitCode::usage),
              HasSubstr("there is no GPU 1 for rank 0: a has 1 GPU"));
  std::vector<RankGpus> none{rank(0, {"p"}), rank(1, {})};
  none[1].why_none = "no driver";
  EXPECT_EQ(refusal(none, {}, ExitCode::not_available), "rank 1 (b): no driver");
}

}  // namespace
}  // namespace polyring
