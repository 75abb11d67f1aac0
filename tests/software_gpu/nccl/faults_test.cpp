// What goes wrong ends within the limit, and is said with rank, host, GPU and call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/host_name.hpp"
#include "tests/software_gpu/nccl/ranks.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr NcclOptions kShort{{0.3}, false};
constexpr NcclOptions kShortBlocking{{0.3}, true};
constexpr ElementKind kKind = ElementKind::float32;
constexpr Count kCount = 4;

void all_reduce(const NcclRank& rank, const DeviceBuffer& buffer) {
  rank.communicator.all_reduce(buffer.data(), buffer.data(), kCount, kKind, ReduceOp::sum, rank.stream);
}

std::string who(Rank rank) {
  return "rank " + std::to_string(rank) + " on " + own_host_name() + " (GPU " + std::to_string(rank) + "): ";
}

TEST(NcclFaults, AHungStartEndsWithinTheLimit) {
  const NcclPlan plan("rank 1 hung start");
  const std::vector<RankEnd> ends = run_ranks(3, kShort, [](const NcclRank&) {});
  for (Rank rank = 0; rank < 3; ++rank) {
    const RankEnd& end = ends[static_cast<std::size_t>(rank)];
    EXPECT_THAT(end.code, AnyOf(ExitCode::timeout, ExitCode::nccl));  // another may abort a little earlier
    EXPECT_THAT(end.sentence,
                AllOf(HasSubstr(who(rank)), HasSubstr("ncclCommInitRankConfig of NCCL 2.28.9")));
  }
  EXPECT_EQ(ends[1].code, ExitCode::timeout);
  EXPECT_THAT(ends[1].sentence, HasSubstr("has not ended within 300 ms"));
}

TEST(NcclFaults, AHungStartThatBlocksEndsWithinTheLimit) {
  const NcclPlan plan("hung start");
  for (const RankEnd& end : run_ranks(2, kShortBlocking, [](const NcclRank&) {})) {
    EXPECT_EQ(end.code, ExitCode::timeout);
    EXPECT_THAT(end.sentence, HasSubstr("ncclCommInitRank of NCCL 2.28.9 has not ended within 300 ms"));
  }
}

TEST(NcclFaults, AFailedStartSaysWhatNcclSays) {
  const NcclPlan plan("rank 1 version 2.27.3");  // which it hides from ncclGetVersion()
  for (const NcclOptions& options : {NcclOptions{}, NcclOptions{{60}, true}}) {
    for (const RankEnd& end : run_ranks(2, options, [](const NcclRank&) {})) {
      EXPECT_EQ(end.code, ExitCode::nccl);
      EXPECT_THAT(end.sentence, AllOf(HasSubstr("failed: invalid usage of the fake NCCL"),
                                      HasSubstr("rank 1 has version 22703"), HasSubstr("NCCL_DEBUG")));
    }
  }
}

TEST(NcclFaults, AHungOperationIsNamed) {
  const NcclPlan plan("rank 0 hung operation 2");
  const std::vector<RankEnd> ends = run_ranks(2, {{1}, false}, [](const NcclRank& rank) {
    const DeviceBuffer buffer(16);
    all_reduce(rank, buffer);
    rank.finish();
    all_reduce(rank, buffer);
    try {
      rank.finish();
    } catch (const Error&) {
      EXPECT_EQ(cudaStreamSynchronize(rank.stream), cudaSuccess) << "nothing runs any more";
      throw;
    }
  });
  // The first to give up is the other's fault.
  for (const RankEnd& end : ends) EXPECT_THAT(end.code, AnyOf(ExitCode::timeout, ExitCode::nccl));
  const RankEnd& first = ends[0].code == ExitCode::timeout ? ends[0] : ends[1];
  EXPECT_THAT(first.sentence, AllOf(HasSubstr(&first == &ends[0] ? who(0) : who(1)),
                                    HasSubstr("up to operation 2, ncclAllReduce of 4 float"),
                                    HasSubstr("has not ended within 1.00 s")));
}

TEST(NcclFaults, AnAsynchronousErrorIsSaid) {
  const NcclPlan plan("rank 1 failed operation 2 as ncclRemoteError");
  const std::vector<RankEnd> ends = run_ranks(2, {}, [](const NcclRank& rank) {
    const DeviceBuffer buffer(16);
    all_reduce(rank, buffer);
    all_reduce(rank, buffer);
    rank.finish();
  });
  for (const RankEnd& end : ends) EXPECT_EQ(end.code, ExitCode::nccl);
  EXPECT_THAT(ends[1].sentence,
              AllOf(HasSubstr("remote error"), HasSubstr("operation 2 failed, as the plan says")));
  EXPECT_THAT(ends[0].sentence, HasSubstr("rank 1 has gone"));
}

TEST(NcclFaults, ARefusedCallIsSaidAndNoneAfterItIsMade) {
  const NcclPlan plan("refused operation 2");
  for (const NcclOptions& options : {NcclOptions{}, NcclOptions{{60}, true}}) {
    expect_success(run_ranks(1, options, [](const NcclRank& rank) {
      const DeviceBuffer buffer(16);
      all_reduce(rank, buffer);
      rank.finish();
      for (int call = 0; call < 2; ++call) {
        try {
          all_reduce(rank, buffer);
          ADD_FAILURE() << "not refused";
        } catch (const Error& error) {
          EXPECT_EQ(error.code(), ExitCode::nccl);
          EXPECT_THAT(error.what(), AllOf(HasSubstr("ncclAllReduce of NCCL 2.28.9 failed: system error"),
                                          HasSubstr(who(rank.communicator.rank()))));
        }
      }
    }));
  }
}

TEST(NcclFaults, ARefusedCallEndsItsGroup) {
  const NcclPlan plan("refused operation 2");
  for (const NcclOptions& options : {NcclOptions{}, NcclOptions{{60}, true}}) {
    expect_success(run_ranks(1, options, [](const NcclRank& rank) {
      const DeviceBuffer buffer(16);
      const Rank peer = 0;
      EXPECT_THROW(rank.communicator.group([&] {
        rank.communicator.send(buffer.data(), 1, kKind, peer, rank.stream);
        rank.communicator.receive(buffer.data() + 8, 1, kKind, peer, rank.stream);
      }),
                   Error);
      EXPECT_THROW(rank.communicator.check(), Error);
      EXPECT_EQ(cudaStreamSynchronize(rank.stream), cudaSuccess);
    }));
  }
}

TEST(NcclFaults, AnExceptionWithinAGroupAborts) {
  struct Trouble {};
  expect_success(run_ranks(1, {}, [](const NcclRank& rank) {
    const DeviceBuffer buffer(16);
    EXPECT_THROW(rank.communicator.group([&] {
      rank.communicator.send(buffer.data(), 1, kKind, 0, rank.stream);
      throw Trouble();
    }),
                 Trouble);
    EXPECT_EQ(cudaStreamSynchronize(rank.stream), cudaSuccess);
    try {
      rank.communicator.check();
      ADD_FAILURE() << "it was aborted";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr("was aborted: a call within a group failed"));
    }
  }));
}

TEST(NcclFaults, AnotherThreadAborts) {
  for (const bool blocking : {false, true}) {
    expect_success(run_ranks(2, {{60}, blocking}, [](const NcclRank& rank) {
      const DeviceBuffer buffer(16);
      std::atomic<bool> waits = false;
      std::thread other([&] {
        while (!waits) std::this_thread::yield();
        rank.communicator.abort();
        rank.communicator.abort();
      });
      try {
        if (rank.communicator.rank() == 0) all_reduce(rank, buffer);  // in vain
        rank.communicator.wait([&] {
          waits = true;
          return false;
        });
        ADD_FAILURE() << "it was aborted";
      } catch (const Error& error) {
        waits = true;
        EXPECT_EQ(error.code(), ExitCode::nccl);
        EXPECT_THAT(error.what(), AnyOf(HasSubstr("was aborted: abort() was called"), HasSubstr("has gone")));
      }
      other.join();
      EXPECT_EQ(cudaStreamSynchronize(rank.stream), cudaSuccess);
      EXPECT_THROW(all_reduce(rank, buffer), Error);
    }));
  }
}

TEST(NcclFaults, ARankThatFailsDoesNotKeepTheOthers) {
  const std::vector<RankEnd> ends = run_ranks(3, {}, [](const NcclRank& rank) {
    const DeviceBuffer buffer(16);
    all_reduce(rank, buffer);
    rank.finish();
    if (rank.communicator.rank() == 1) throw Error(ExitCode::internal, "trouble");
    all_reduce(rank, buffer);
    rank.finish();
  });
  EXPECT_EQ(ends[1].code, ExitCode::internal);
  EXPECT_EQ(ends[0].code, ExitCode::nccl);
  EXPECT_EQ(ends[2].code, ExitCode::nccl);
}

}  // namespace
}  // namespace polyring
