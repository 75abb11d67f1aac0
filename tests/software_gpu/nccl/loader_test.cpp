// NCCL's library: found or not, and what its environment variables say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "collectives/cuda/nccl.hpp"
#include "collectives/cuda/nccl_choice.hpp"
#include "tests/software_gpu/nccl/ranks.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(NcclLibrary, IsFound) {
  const NcclLibrary library = fake_nccl();
  ASSERT_TRUE(library.found()) << library.why_not();
  EXPECT_EQ(library.version(), "2.28.9");
  EXPECT_EQ(library.version_code(), 22809);
  EXPECT_TRUE(std::filesystem::equivalent(library.path(), POLYRING_SOFTWARE_NCCL));
  EXPECT_EQ(library.why_not(), "");
}

TEST(NcclLibrary, IsAbsent) {
  const NcclLibrary library("/nowhere/libnccl.so.2");
  EXPECT_FALSE(library.found());
  EXPECT_THAT(library.why_not(), AllOf(HasSubstr("NCCL could not be loaded"),
                                       HasSubstr("/nowhere/libnccl.so.2"), HasSubstr("POLYRING_NCCL")));
  EXPECT_EQ(library.version(), "");
}

TEST(NcclLibrary, IsAnotherLibrary) {
  const NcclLibrary library("libm.so.6");
  EXPECT_FALSE(library.found());
  EXPECT_THAT(library.why_not(), AllOf(HasSubstr("libm.so.6 is not NCCL"), HasSubstr("POLYRING_NCCL")));
}

TEST(NcclLibrary, IsNoLibrary) {
  const NcclLibrary library("/proc/self/cmdline");
  EXPECT_FALSE(library.found());
  EXPECT_THAT(library.why_not(), HasSubstr("/proc/self/cmdline"));
}

TEST(NcclLibrary, IsTooOld) {
  const NcclPlan plan("version 2.4.8");
  const NcclLibrary library = fake_nccl();
  EXPECT_FALSE(library.found());
  EXPECT_THAT(library.why_not(), AllOf(HasSubstr("NCCL 2.4.8 in "), HasSubstr("2.7 or later")));
}

TEST(NcclLibrary, KnowsWhatOldOnesReduce) {
  const NcclPlan plan("version 2.9.9");
  const NcclLibrary library = fake_nccl();
  ASSERT_TRUE(library.found()) << library.why_not();
  EXPECT_TRUE(library.reduces(ElementKind::float16, ReduceOp::sum));
  EXPECT_FALSE(library.reduces(ElementKind::bfloat16, ReduceOp::sum));
  EXPECT_FALSE(library.reduces(ElementKind::float32, ReduceOp::avg));
}

TEST(NcclVersion, HasTwoEncodings) {
  EXPECT_EQ(nccl_version_text(2708), "2.7.8");
  EXPECT_EQ(nccl_version_text(20906), "2.9.6");
  EXPECT_EQ(nccl_version_text(22809), "2.28.9");
  EXPECT_EQ(nccl_version_text(23007), "2.30.7");
}

TEST(NcclRanks, AllFailIfOneHasNoLibrary) {
  const NcclLibrary library = fake_nccl();
  const NcclLibrary absent("/nowhere/libnccl.so.2");
  const std::vector<RankEnd> ends = run_threads(3, [&](const Bootstrap& bootstrap) {
    NcclCommunicator(bootstrap.rank() == 1 ? absent : library, bootstrap, device_of(bootstrap.rank()), {});
  });
  for (const RankEnd& end : ends) {
    EXPECT_EQ(end.code, ExitCode::not_available);
    EXPECT_THAT(end.sentence, AllOf(HasSubstr("rank 1 on "), HasSubstr("NCCL could not be loaded")));
    EXPECT_EQ(end.sentence, ends[0].sentence);
  }
}

TEST(NcclRanks, HaveOneVersion) {
  const NcclLibrary library = fake_nccl();
  const NcclPlan plan("version 2.27.3");
  const NcclLibrary older = fake_nccl();
  const std::vector<RankEnd> ends = run_threads(4, [&](const Bootstrap& bootstrap) {
    NcclCommunicator(bootstrap.rank() == 2 ? older : library, bootstrap, device_of(bootstrap.rank()), {});
  });
  for (const RankEnd& end : ends) {
    EXPECT_EQ(end.code, ExitCode::nccl);
    EXPECT_THAT(end.sentence, AllOf(HasSubstr("unequal versions"), HasSubstr("2.27.3 at rank 2 on "),
                                    HasSubstr("2.28.9 at rank 0 on "), HasSubstr(" and 2 ranks more")));
  }
}

std::vector<RankEnd> share_one_gpu(const char* uuids[2]) {
  const NcclLibrary library = fake_nccl();
  return run_threads(2, [&](const Bootstrap& bootstrap) {
    cudaSetDevice(3);
    NcclDevice device = device_of(3);
    device.uuid = uuids[bootstrap.rank()];
    NcclCommunicator(library, bootstrap, device, {});
  });
}

TEST(NcclRanks, HaveAGpuEach) {
  const char* uuids[] = {"a", "b"};  // parts of one GPU
  for (const RankEnd& end : share_one_gpu(uuids)) {
    EXPECT_EQ(end.code, ExitCode::not_available);
    EXPECT_THAT(end.sentence, AllOf(HasSubstr("NCCL 2.28.9 refuses ranks 0 and 1"),
                                    HasSubstr("both use GPU 3"), HasSubstr("NCCL 2.30")));
  }
}

TEST(NcclRanks, ShareAGpuSinceVersion230IfToldSo) {
  const NcclPlan plan("version 2.30.7");
  const char* uuids[] = {"a", "a"};
  for (const RankEnd& end : share_one_gpu(uuids)) {
    EXPECT_EQ(end.code, ExitCode::not_available);
    EXPECT_THAT(end.sentence, AllOf(HasSubstr("set NCCL_MULTI_RANK_GPU_ENABLE=1")));
  }
  setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 1);
  const std::vector<RankEnd> ends = share_one_gpu(uuids);
  unsetenv("NCCL_MULTI_RANK_GPU_ENABLE");
  expect_success(ends);
}

TEST(NcclChoice, IsASingleName) {
  const auto algorithm = [](Collective collective, const char* text) {
    return nccl_choice(collective, text, "").algorithm;
  };
  EXPECT_EQ(algorithm(Collective::allreduce, "Ring"), "ring");
  EXPECT_EQ(algorithm(Collective::allreduce, "NVLSTree"), "nvlstree");
  EXPECT_EQ(algorithm(Collective::allreduce, ""), "");
  EXPECT_EQ(algorithm(Collective::allreduce, "Ring,Tree"), "");
  EXPECT_EQ(algorithm(Collective::allreduce, "^Tree"), "");
  EXPECT_EQ(algorithm(Collective::allreduce, "banana"), "");
  EXPECT_EQ(algorithm(Collective::allreduce, "tree;allreduce:Ring;broadcast:tree"), "ring");
  EXPECT_EQ(algorithm(Collective::allgather, "ring;AllReduce:tree"), "ring");
}

TEST(NcclChoice, MustRunTheCollective) {
  EXPECT_EQ(nccl_choice(Collective::allreduce, "Tree", "").algorithm, "tree");
  EXPECT_EQ(nccl_choice(Collective::reduce_scatter, "Tree", "").algorithm, "");
  EXPECT_EQ(nccl_choice(Collective::allgather, "PAT", "").algorithm, "pat");
  EXPECT_EQ(nccl_choice(Collective::allreduce, "PAT", "").algorithm, "");
  EXPECT_EQ(nccl_choice(Collective::alltoall, "Ring", "LL").algorithm, "");
}

TEST(NcclChoice, NamesTheContender) {
  EXPECT_EQ(nccl_name(nccl_choice(Collective::allreduce, "Ring", "LL128")), "nccl:ring");
  EXPECT_EQ(nccl_choice(Collective::allreduce, "Ring", "LL128").protocol, "ll128");
  EXPECT_EQ(nccl_name({}), "nccl");
}

TEST(NcclChoice, ReadsTheEnvironment) {
  setenv("NCCL_ALGO", "Tree", 1);
  EXPECT_EQ(nccl_name(nccl_choice(Collective::allreduce)), "nccl:tree");
  unsetenv("NCCL_ALGO");
  EXPECT_EQ(nccl_name(nccl_choice(Collective::allreduce)), "nccl");
}

}  // namespace
}  // namespace polyring
