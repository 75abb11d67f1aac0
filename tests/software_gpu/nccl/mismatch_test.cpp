// What the fake NCCL must notice, of Polyring's communicators and of bare calls.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "collectives/cuda/nccl_calls.hpp"
#include "tests/software_gpu/nccl/ranks.hpp"

namespace polyring {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Field;
using ::testing::HasSubstr;

constexpr ElementKind kKind = ElementKind::float32;

/// A sentence that one of two ranks ends with, and that is none about the other's end.
std::string fault_of(const std::function<void(const NcclRank&, const DeviceBuffer&)>& body) {
  std::string sentence;
  for (const RankEnd& end : run_ranks(2, {{20}, false}, [&](const NcclRank& rank) {
         const DeviceBuffer buffer(256);
         body(rank, buffer);
         rank.finish();
       })) {
    EXPECT_EQ(end.code, ExitCode::nccl) << end.sentence;
    if (end.sentence.find("has gone") == std::string::npos) sentence = end.sentence;
  }
  return sentence;
}

TEST(FakeNccl, FindsUnequalCounts) {
  EXPECT_THAT(fault_of([](const NcclRank& rank, const DeviceBuffer& buffer) {
                rank.communicator.all_reduce(buffer.data(), buffer.data(), 4 + rank.communicator.rank(),
                                             kKind, ReduceOp::sum, rank.stream);
              }),
              AllOf(HasSubstr("operation 1, ncclAllReduce of 4 ncclFloat32 by ncclSum"),
                    HasSubstr("operation 1, ncclAllReduce of 5 ncclFloat32"), HasSubstr("unequal counts")));
}

TEST(FakeNccl, FindsUnequalTypes) {
  EXPECT_THAT(fault_of([](const NcclRank& rank, const DeviceBuffer& buffer) {
                const ElementKind kind = rank.communicator.rank() == 0 ? kKind : ElementKind::int32;
                rank.communicator.all_gather(buffer.data(), buffer.data() + 64, 4, kind, rank.stream);
              }),
              HasSubstr("unequal types"));
}

TEST(FakeNccl, FindsUnequalReductions) {
  EXPECT_THAT(fault_of([](const NcclRank& rank, const DeviceBuffer& buffer) {
                const ReduceOp op = rank.communicator.rank() == 0 ? ReduceOp::max : ReduceOp::min;
                rank.communicator.all_reduce(buffer.data(), buffer.data(), 4, kKind, op, rank.stream);
              }),
              HasSubstr("unequal reductions"));
}

TEST(FakeNccl, FindsAnotherOrder) {
  EXPECT_THAT(fault_of([](const NcclRank& rank, const DeviceBuffer& buffer) {
                for (int call = 0; call < 2; ++call) {
                  if (call == rank.communicator.rank()) {
                    rank.communicator.all_gather(buffer.data(), buffer.data() + 64, 4, kKind, rank.stream);
                  } else {
                    rank.communicator.all_reduce(buffer.data(), buffer.data(), 4, kKind, ReduceOp::sum,
                                                 rank.stream);
                  }
                }
              }),
              HasSubstr("have the same place among the collectives and are not the same"));
}

TEST(FakeNccl, FindsCollectivesThatAreGroupedInAnotherWay) {
  EXPECT_THAT(fault_of([](const NcclRank& rank, const DeviceBuffer& buffer) {
                const auto both = [&] {
                  rank.communicator.all_reduce(buffer.data(), buffer.data(), 4, kKind, ReduceOp::sum,
                                               rank.stream);
                  rank.communicator.all_reduce(buffer.data() + 64, buffer.data() + 64, 4, kKind,
                                               ReduceOp::sum, rank.stream);
                };
                rank.communicator.rank() == 0 ? both() : rank.communicator.group(both);
              }),
              HasSubstr("groups with unequal numbers of collectives"));
}

TEST(FakeNccl, FindsMessagesOfUnequalCounts) {
  EXPECT_THAT(fault_of([](const NcclRank& rank, const DeviceBuffer& buffer) {
                rank.communicator.rank() == 0
                    ? rank.communicator.send(buffer.data(), 4, kKind, 1, rank.stream)
                    : rank.communicator.receive(buffer.data(), 3, kKind, 0, rank.stream);
              }),
              AllOf(HasSubstr("rank 0's operation 1, ncclSend of 4 ncclFloat32 to rank 1"),
                    HasSubstr("rank 1's operation 1, ncclRecv of 3 ncclFloat32 from rank 0"),
                    HasSubstr("unequal counts")));
}

TEST(FakeNccl, NamesADeadlock) {
  EXPECT_THAT(
      fault_of([](const NcclRank& rank, const DeviceBuffer& buffer) {
        const Rank peer = 1 - rank.communicator.rank();
        rank.communicator.send(buffer.data(), 4, kKind, peer, rank.stream);
        rank.communicator.receive(buffer.data(), 4, kKind, peer, rank.stream);
      }),
      AllOf(
          HasSubstr("deadlock: rank 0 waits in operation 1, ncclSend of 4 ncclFloat32 to rank 1 for rank 1's "
                    "ncclRecv"),
          HasSubstr("rank 1 waits in operation 1")));
}

TEST(FakeNccl, NamesARankThatDoesNotCome) {
  setenv("POLYRING_SOFTWARE_NCCL_LIMIT", "1", 1);
  const NcclPlan plan("rank 1 hung operation 2");
  EXPECT_THAT(fault_of([](const NcclRank& rank, const DeviceBuffer& buffer) {
                for (int call = 0; call < 2; ++call) {
                  rank.communicator.all_reduce(buffer.data(), buffer.data(), 4, kKind, ReduceOp::sum,
                                               rank.stream);
                }
              }),
              AllOf(HasSubstr("nothing happens for 1 s: rank 0 waits in operation 2, ncclAllReduce"),
                    HasSubstr("for rank 1; rank 1 has done 1 operations")));
  unsetenv("POLYRING_SOFTWARE_NCCL_LIMIT");
}

TEST(FakeNccl, NamesARankThatHasFinalized) {
  EXPECT_THAT(run_ranks(2, {{20}, false},
                        [](const NcclRank& rank) {
                          const DeviceBuffer buffer(16);
                          if (rank.communicator.rank() == 1) return;
                          rank.communicator.all_reduce(buffer.data(), buffer.data(), 4, kKind, ReduceOp::sum,
                                                       rank.stream);
                          rank.finish();
                        }),
              Contains(Field(&RankEnd::sentence, AllOf(HasSubstr("for rank 1; rank 1 has finalized")))));
}

/// What a call on one rank alone fails with.
std::string refusal_of(const std::function<void(const NcclRank&, const DeviceBuffer&)>& body) {
  return run_ranks(1, {},
                   [&](const NcclRank& rank) {
                     const DeviceBuffer buffer(256);
                     body(rank, buffer);
                   })
      .front()
      .sentence;
}

TEST(FakeNccl, RefusesMemoryOfTheHost) {
  EXPECT_THAT(refusal_of([](const NcclRank& rank, const DeviceBuffer& buffer) {
                float here[4] = {};
                rank.communicator.all_reduce(here, buffer.data(), 4, kKind, ReduceOp::sum, rank.stream);
              }),
              HasSubstr("the input is no memory of its device"));
}

TEST(FakeNccl, RefusesMemoryOfAnotherDevice) {
  EXPECT_THAT(refusal_of([](const NcclRank& rank, const DeviceBuffer& buffer) {
                cudaSetDevice(1);
                const DeviceBuffer other(16);
                cudaSetDevice(0);
                rank.communicator.all_reduce(buffer.data(), other.data(), 4, kKind, ReduceOp::sum,
                                             rank.stream);
              }),
              HasSubstr("the output is no memory of its device"));
}

TEST(FakeNccl, RefusesMoreThanTheAllocation) {
  EXPECT_THAT(refusal_of([](const NcclRank& rank, const DeviceBuffer& buffer) {
                rank.communicator.all_reduce(buffer.data(), buffer.data(), 65, kKind, ReduceOp::sum,
                                             rank.stream);
              }),
              HasSubstr("the input is no memory of its device"));
}

TEST(FakeNccl, RefusesOverlaps) {
  EXPECT_THAT(refusal_of([](const NcclRank& rank, const DeviceBuffer& buffer) {
                rank.communicator.all_reduce(buffer.data(), buffer.data() + 4, 4, kKind, ReduceOp::sum,
                                             rank.stream);
              }),
              HasSubstr("input and output overlap"));
  EXPECT_THAT(refusal_of([](const NcclRank& rank, const DeviceBuffer& buffer) {
                rank.communicator.group([&] {
                  rank.communicator.send(buffer.data(), 4, kKind, 0, rank.stream);
                  rank.communicator.receive(buffer.data() + 8, 4, kKind, 0, rank.stream);
                });
              }),
              HasSubstr("one writes the other's memory"));
}

TEST(FakeNccl, RefusesARankThatThereIsNot) {
  EXPECT_THAT(refusal_of([](const NcclRank& rank, const DeviceBuffer& buffer) {
                rank.communicator.send(buffer.data(), 4, kKind, 1, rank.stream);
              }),
              HasSubstr("there is no such rank"));
}

TEST(FakeNccl, RefusesTheStreamOfAnotherDevice) {
  EXPECT_THAT(refusal_of([](const NcclRank& rank, const DeviceBuffer& buffer) {
                cudaSetDevice(1);
                const DeviceStream other;
                cudaSetDevice(0);
                rank.communicator.all_reduce(buffer.data(), buffer.data(), 4, kKind, ReduceOp::sum,
                                             other.get());
              }),
              HasSubstr("the stream is another device's"));
}

/// A function of the fake that Polyring does not call.
template <typename Function>
Function* function(const char* name) {
  void* const library = dlopen(POLYRING_SOFTWARE_NCCL, RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function*>(dlsym(library, name));
}

class BareCalls : public ::testing::Test {
 protected:
  /// A communicator of one rank.
  ncclComm_t start(bool blocking) {
    ncclUniqueId id;
    EXPECT_EQ(calls.ncclGetUniqueId(&id), ncclSuccess);
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocking ? 1 : 0;
    ncclComm_t communicator = nullptr;
    EXPECT_EQ(calls.ncclCommInitRankConfig(&communicator, 1, id, 0, &config),
              blocking ? ncclSuccess : ncclInProgress);
    return communicator;
  }
  void poll(ncclComm_t communicator) {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) ASSERT_EQ(calls.ncclCommGetAsyncError(communicator, &state), ncclSuccess);
    EXPECT_EQ(state, ncclSuccess);
  }
  ncclResult_t reduce(ncclComm_t communicator) {
    return calls.ncclAllReduce(buffer.data(), buffer.data(), 4, ncclFloat32, ncclSum, communicator,
                               stream.get());
  }

  const NcclLibrary library = fake_nccl();
  const NcclCalls& calls = library.calls();
  const DeviceBuffer buffer{256};
  const DeviceStream stream;
};

TEST_F(BareCalls, DoNotRunBeforeTheyArePolled) {
  const NcclPlan plan("seed 3");
  ncclComm_t const communicator = start(false);
  poll(communicator);
  EXPECT_EQ(reduce(communicator), ncclInProgress);
  EXPECT_EQ(reduce(communicator), ncclInvalidArgument) << "the last call was not complete";
  EXPECT_EQ(calls.ncclCommAbort(communicator), ncclSuccess);
}

TEST_F(BareCalls, AreRefusedAfterAnAbort) {
  ncclComm_t const communicator = start(true);
  EXPECT_EQ(calls.ncclCommAbort(communicator), ncclSuccess);
  EXPECT_EQ(reduce(communicator), ncclInvalidArgument);
  EXPECT_STREQ(calls.ncclGetLastError(nullptr), "ncclAllReduce on a communicator after ncclCommAbort");
  EXPECT_EQ(calls.ncclCommDestroy(communicator), ncclInvalidArgument);
  EXPECT_EQ(reduce(nullptr), ncclInvalidArgument);
}

TEST_F(BareCalls, NeedTheConfigsInitializer) {
  ncclUniqueId id;
  EXPECT_EQ(calls.ncclGetUniqueId(&id), ncclSuccess);
  ncclConfig_t config{};
  ncclComm_t communicator = nullptr;
  EXPECT_EQ(calls.ncclCommInitRankConfig(&communicator, 1, id, 0, &config), ncclInvalidArgument);
}

TEST_F(BareCalls, NestGroups) {
  ncclComm_t const communicator = start(true);
  EXPECT_EQ(calls.ncclGroupEnd(), ncclInvalidUsage) << "no group was begun";
  EXPECT_EQ(calls.ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(calls.ncclSend(buffer.data(), 4, ncclFloat32, 0, communicator, stream.get()), ncclSuccess);
  EXPECT_EQ(calls.ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(calls.ncclRecv(buffer.data() + 64, 4, ncclFloat32, 0, communicator, stream.get()), ncclSuccess);
  EXPECT_EQ(calls.ncclGroupEnd(), ncclSuccess);
  EXPECT_TRUE(stream.is_idle()) << "the outer group has not ended";
  EXPECT_EQ(calls.ncclGroupEnd(), ncclSuccess);
  EXPECT_EQ(cudaStreamSynchronize(stream.get()), cudaSuccess);
  EXPECT_EQ(calls.ncclCommDestroy(communicator), ncclSuccess);
}

TEST_F(BareCalls, DriveSeveralDevicesFromOneThread) {
  ncclComm_t communicators[3] = {};
  ASSERT_EQ(function<decltype(ncclCommInitAll)>("ncclCommInitAll")(communicators, 3, nullptr), ncclSuccess);
  std::vector<DeviceBuffer> buffers;
  cudaStream_t streams[3] = {};
  calls.ncclGroupStart();
  for (int rank = 0; rank < 3; ++rank) {
    cudaSetDevice(rank);
    cudaStreamCreateWithFlags(&streams[rank], cudaStreamNonBlocking);
    const float value = static_cast<float>(rank);
    const DeviceBuffer& one = buffers.emplace_back(std::as_bytes(std::span(&value, 1)));
    EXPECT_EQ(calls.ncclAllReduce(one.data(), one.data(), 1, ncclFloat32, ncclSum, communicators[rank],
                                  streams[rank]),
              ncclSuccess);
  }
  EXPECT_EQ(calls.ncclGroupEnd(), ncclSuccess);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(cudaStreamSynchronize(streams[rank]), cudaSuccess);
    const float sum = 3;
    EXPECT_EQ(buffers[static_cast<std::size_t>(rank)].read(),
              std::vector<std::byte>(reinterpret_cast<const std::byte*>(&sum),
                                     reinterpret_cast<const std::byte*>(&sum + 1)));
    int number = -1;
    EXPECT_EQ(function<decltype(ncclCommUserRank)>("ncclCommUserRank")(communicators[rank], &number),
              ncclSuccess);
    EXPECT_EQ(number, rank);
    EXPECT_EQ(function<decltype(ncclCommCuDevice)>("ncclCommCuDevice")(communicators[rank], &number),
              ncclSuccess);
    EXPECT_EQ(number, rank);
    EXPECT_EQ(function<decltype(ncclCommCount)>("ncclCommCount")(communicators[rank], &number), ncclSuccess);
    EXPECT_EQ(number, 3);
  }
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(calls.ncclCommDestroy(communicators[rank]), ncclSuccess);
    cudaStreamDestroy(streams[rank]);
  }
  cudaSetDevice(0);
}

TEST_F(BareCalls, OneGpuForTwoRanksIsRefused) {
  ncclComm_t communicators[2] = {};
  const int devices[2] = {1, 1};
  EXPECT_EQ(function<decltype(ncclCommInitAll)>("ncclCommInitAll")(communicators, 2, devices),
            ncclInvalidUsage);
  EXPECT_THAT(calls.ncclGetLastError(nullptr), HasSubstr("duplicate GPU: rank 0 and rank 1"));
  for (ncclComm_t communicator : communicators) EXPECT_EQ(calls.ncclCommAbort(communicator), ncclSuccess);
}

TEST_F(BareCalls, AllocateMemory) {
  void* memory = nullptr;
  ASSERT_EQ(function<decltype(ncclMemAlloc)>("ncclMemAlloc")(&memory, 64), ncclSuccess);
  ncclComm_t const communicator = start(true);
  void* handle = nullptr;
  EXPECT_EQ(calls.ncclCommRegister(communicator, memory, 65, &handle), ncclInvalidArgument);
  EXPECT_EQ(calls.ncclCommRegister(communicator, memory, 64, &handle), ncclSuccess);
  EXPECT_EQ(calls.ncclCommDeregister(communicator, handle), ncclSuccess);
  EXPECT_EQ(calls.ncclCommDeregister(communicator, handle), ncclInvalidArgument);
  EXPECT_EQ(calls.ncclCommDestroy(communicator), ncclSuccess);
  EXPECT_EQ(function<decltype(ncclMemFree)>("ncclMemFree")(memory), ncclSuccess);
}

TEST(BareCallsDeathTest, NameWhatIsAbsent) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto broadcast = function<void()>("ncclBroadcast");
  EXPECT_DEATH(broadcast(), "ncclBroadcast is not implemented by the fake NCCL");
}

TEST(BareCallsDeathTest, EndTheProcessIfToldSo) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto end = function<decltype(ncclGroupEnd)>("ncclGroupEnd");
  EXPECT_DEATH(
      {
        setenv("POLYRING_SOFTWARE_NCCL_ABORT", "1", 1);
        end();
      },
      "software NCCL: ncclGroupEnd without ncclGroupStart");
}

}  // namespace
}  // namespace polyring
