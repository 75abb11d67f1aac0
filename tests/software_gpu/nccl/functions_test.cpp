// NcclCommunicator's operations over the fake NCCL, or over the one that POLYRING_NCCL names where there are
// GPUs, compared with the host's kernels.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <span>
#include <vector>

#include "base/index.hpp"
#include "collectives/runtime/kernels.hpp"
#include "tests/software_gpu/nccl/ranks.hpp"

namespace polyring {
namespace {

using Bytes = std::vector<std::byte>;

std::size_t bytes_for(Count count, ElementKind kind) { return bytes_of(count, kind).value; }

/// Small whole numbers of either sign, which every kind can hold, drawn for this rank.
Bytes payload(Rank rank, Count count, ElementKind kind) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  const Count size = size_of(kind);
  Bytes content(bytes_for(count, kind));
  for (Count element = 0; element < count; ++element) {
    std::byte* const to = content.data() + element * size;
    const int number = static_cast<int>(random() % 15) - 7;
    if (kind == ElementKind::float64) {
      const double value = number;
      std::memcpy(to, &value, sizeof value);
    } else if (kind == ElementKind::int64) {
      const std::int64_t value = number;
      std::memcpy(to, &value, sizeof value);
    } else if (kind == ElementKind::int32) {
      std::memcpy(to, &number, sizeof number);
    } else if (kind == ElementKind::float32) {
      const auto value = static_cast<float>(number);
      std::memcpy(to, &value, sizeof value);
    } else {  // any finite half
      const auto bits = static_cast<std::uint16_t>(random() & 0xbbffU);
      std::memcpy(to, &bits, sizeof bits);
    }
  }
  return content;
}

Bytes reduced(int ranks, Count count, ElementKind kind, ReduceOp op) {
  std::vector<Bytes> inputs;
  std::vector<const std::byte*> pointers;
  for (Rank rank = 0; rank < ranks; ++rank) inputs.push_back(payload(rank, count, kind));
  for (const Bytes& input : inputs) pointers.push_back(input.data());
  Bytes result(bytes_for(count, kind));
  std::byte* const outputs[] = {result.data()};
  combine_many({kind, op, op == ReduceOp::avg ? ranks : 1}, outputs, pointers, count, Stores::cached);
  return result;
}

Bytes part_of(const Bytes& whole, Rank part, std::size_t bytes) {
  const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(index(part) * bytes);
  return {begin, begin + static_cast<std::ptrdiff_t>(bytes)};
}

bool has_gpus(int ranks) {
  int gpus = 0;
  return cudaGetDeviceCount(&gpus) == cudaSuccess && gpus >= ranks;
}

/// NVIDIA's NCCL rounds in an order of its own, more than once.
bool has_one_result(ElementKind kind, ReduceOp op, int ranks) {
  return !is_another_nccl() || ranks == 1 || (size_of(kind) > 2 && op != ReduceOp::avg);
}

class NcclFunctions : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!has_gpus(GetParam())) GTEST_SKIP() << "needs a GPU for each rank";
  }
  void run(const std::function<void(const NcclRank&)>& body, bool blocking = false) const {
    NcclOptions options;
    options.blocking = blocking;
    expect_success(run_ranks(GetParam(), options, body));
  }
};

TEST_P(NcclFunctions, AllReduceKindsAndOperations) {
  run([](const NcclRank& rank) {
    constexpr Count kCount = 37;
    for (const ElementKind kind : kElementKinds) {
      for (const ReduceOp op : kReduceOps) {
        if (!has_one_result(kind, op, rank.communicator.size())) continue;
        const DeviceBuffer from(payload(rank.communicator.rank(), kCount, kind));
        const DeviceBuffer to(bytes_for(kCount, kind));
        rank.communicator.all_reduce(from.data(), to.data(), kCount, kind, op, rank.stream);
        rank.finish();
        EXPECT_EQ(to.read(), reduced(rank.communicator.size(), kCount, kind, op))
            << to_text(kind) << to_text(op);
      }
    }
  });
}

TEST_P(NcclFunctions, ReduceInPlaceOneAfterTheOther) {
  run([](const NcclRank& rank) {
    constexpr ElementKind kKind = ElementKind::int32;
    std::vector<DeviceBuffer> buffers;
    constexpr Count kCounts[] = {1, 0, 1000, 3};
    for (const Count count : kCounts) {
      const DeviceBuffer& buffer = buffers.emplace_back(payload(rank.communicator.rank(), count, kKind));
      rank.communicator.all_reduce(buffer.data(), buffer.data(), count, kKind, ReduceOp::sum, rank.stream);
    }
    rank.finish();
    for (std::size_t index = 0; index < buffers.size(); ++index) {
      EXPECT_EQ(buffers[index].read(),
                reduced(rank.communicator.size(), kCounts[index], kKind, ReduceOp::sum));
    }
  });
}

void scatter_and_gather(const NcclRank& rank) {
  constexpr ElementKind kKind = ElementKind::float32;
  constexpr Count kEach = 11;
  const std::size_t each = bytes_for(kEach, kKind);
  const int size = rank.communicator.size();
  const Rank own = rank.communicator.rank();
  const Bytes result = reduced(size, kEach * size, kKind, ReduceOp::sum);
  const DeviceBuffer from(payload(own, kEach * size, kKind));
  const DeviceBuffer part(each);
  const DeviceBuffer all(each * index(size));
  rank.communicator.reduce_scatter(from.data(), part.data(), kEach, kKind, ReduceOp::sum, rank.stream);
  rank.communicator.all_gather(part.data(), all.data(), kEach, kKind, rank.stream);
  // In place, too.
  std::byte* const place = from.data() + index(own) * each;
  rank.communicator.reduce_scatter(from.data(), place, kEach, kKind, ReduceOp::sum, rank.stream);
  rank.communicator.all_gather(place, from.data(), kEach, kKind, rank.stream);
  rank.finish();
  EXPECT_EQ(part.read(), part_of(result, own, each));
  EXPECT_EQ(all.read(), result);
  EXPECT_EQ(from.read(), result);
}

TEST_P(NcclFunctions, ReduceScatterAndAllGather) { run(scatter_and_gather); }
TEST_P(NcclFunctions, ReduceScatterAndAllGatherWithCallsThatBlock) { run(scatter_and_gather, true); }

TEST_P(NcclFunctions, SendAndReceiveInGroups) {
  run([](const NcclRank& rank) {
    constexpr ElementKind kKind = ElementKind::bfloat16;
    constexpr Count kCount = 5;
    const int size = rank.communicator.size();
    const Rank own = rank.communicator.rank();
    const DeviceBuffer from(payload(own, kCount, kKind));
    std::vector<DeviceBuffer> to;
    for (Rank peer = 0; peer < size; ++peer) to.emplace_back(bytes_for(kCount, kKind));
    for (int round = 0; round < 3; ++round) {
      rank.communicator.group([&] {
        for (Rank peer = 0; peer < size; ++peer)
          rank.communicator.send(from.data(), kCount, kKind, peer, rank.stream);
        for (Rank peer = size - 1; peer >= 0; --peer) {
          rank.communicator.receive(to[index(peer)].data(), kCount, kKind, peer, rank.stream);
        }
      });
    }
    rank.finish();
    for (Rank peer = 0; peer < size; ++peer) EXPECT_EQ(to[index(peer)].read(), payload(peer, kCount, kKind));
  });
}

TEST_P(NcclFunctions, MessagesOfAPairMatchInTheOrderOfIssue) {
  run([](const NcclRank& rank) {
    constexpr ElementKind kKind = ElementKind::int64;
    const int size = rank.communicator.size();
    const Rank own = rank.communicator.rank();
    const Rank next = (own + 1) % size;
    const Rank before = (own + size - 1) % size;
    const DeviceBuffer small(payload(own, 2, kKind));
    const DeviceBuffer large(payload(own, 9, kKind));
    const DeviceBuffer first(bytes_for(2, kKind));
    const DeviceBuffer second(bytes_for(9, kKind));
    rank.communicator.group([&] {
      rank.communicator.send(small.data(), 2, kKind, next, rank.stream);
      rank.communicator.receive(first.data(), 2, kKind, before, rank.stream);
      rank.communicator.send(large.data(), 9, kKind, next, rank.stream);
      rank.communicator.receive(second.data(), 9, kKind, before, rank.stream);
    });
    rank.finish();
    EXPECT_EQ(first.read(), payload(before, 2, kKind));
    EXPECT_EQ(second.read(), payload(before, 9, kKind));
  });
}

TEST_P(NcclFunctions, CollectivesInOneGroup) {
  run([](const NcclRank& rank) {
    constexpr ElementKind kKind = ElementKind::float64;
    const DeviceBuffer first(payload(rank.communicator.rank(), 4, kKind));
    const DeviceBuffer second(payload(rank.communicator.rank(), 7, kKind));
    rank.communicator.group([&] {
      rank.communicator.all_reduce(first.data(), first.data(), 4, kKind, ReduceOp::max, rank.stream);
      rank.communicator.all_reduce(second.data(), second.data(), 7, kKind, ReduceOp::min, rank.stream);
    });
    rank.finish();
    EXPECT_EQ(first.read(), reduced(rank.communicator.size(), 4, kKind, ReduceOp::max));
    EXPECT_EQ(second.read(), reduced(rank.communicator.size(), 7, kKind, ReduceOp::min));
  });
}

void run_in_a_graph(const NcclRank& rank) {
  const DeviceBuffer buffer(payload(rank.communicator.rank(), 5, ElementKind::int32));
  const auto reduce = [&] {
    rank.communicator.all_reduce(buffer.data(), buffer.data(), 5, ElementKind::int32, ReduceOp::sum,
                                 rank.stream);
  };
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(rank.stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  reduce();
  ASSERT_EQ(cudaStreamEndCapture(rank.stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  EXPECT_EQ(cudaGraphLaunch(executable, rank.stream), cudaSuccess);
  reduce();  // in order with the graph's
  EXPECT_EQ(cudaGraphLaunch(executable, rank.stream), cudaSuccess);
  rank.finish();
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  Bytes expected = reduced(rank.communicator.size(), 5, ElementKind::int32, ReduceOp::sum);
  for (std::size_t at = 0; at < expected.size(); at += sizeof(int)) {
    int number = 0;
    std::memcpy(&number, &expected[at], sizeof number);
    number *= rank.communicator.size() * rank.communicator.size();  // all ranks have the same, twice
    std::memcpy(&expected[at], &number, sizeof number);
  }
  EXPECT_EQ(buffer.read(), expected);
}

TEST_P(NcclFunctions, RunInGraphs) { run(run_in_a_graph); }
TEST_P(NcclFunctions, RunInGraphsWithCallsThatBlock) { run(run_in_a_graph, true); }

TEST_P(NcclFunctions, MemoryOfItsOwn) {
  for (const NcclMemory kind : {NcclMemory::local, NcclMemory::symmetric}) {
    run([kind](const NcclRank& rank) {
      const auto input = payload(rank.communicator.rank(), 6, ElementKind::int32);
      const Memory memory = rank.communicator.allocate({input.size()}, kind);
      cudaMemcpy(memory.get(), input.data(), input.size(), cudaMemcpyHostToDevice);
      cudaStreamSynchronize(nullptr);
      rank.communicator.all_reduce(memory.get(), memory.get(), 6, ElementKind::int32, ReduceOp::prod,
                                   rank.stream);
      rank.finish();
      auto output = input;
      cudaMemcpy(output.data(), memory.get(), output.size(), cudaMemcpyDeviceToHost);
      EXPECT_EQ(output, reduced(rank.communicator.size(), 6, ElementKind::int32, ReduceOp::prod));
      EXPECT_TRUE(is_another_nccl() || registered_with_fake(kind) > 0);
    });
    EXPECT_TRUE(is_another_nccl() || registered_with_fake(kind) == 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, NcclFunctions, ::testing::Range(1, 7));

TEST(NcclFunctionsOfSeveralCommunicators, RunSideBySide) {
  if (!has_gpus(3)) GTEST_SKIP() << "needs 3 GPUs";
  const NcclLibrary library = tested_nccl();
  expect_success(run_threads(3, [&](const Bootstrap& bootstrap) {
    const NcclDevice device = device_of(bootstrap.rank());
    const DeviceStream streams[2];
    NcclCommunicator first(library, bootstrap, device, {});
    NcclCommunicator second(library, bootstrap, device, {});
    const DeviceBuffer one(payload(bootstrap.rank(), 8, ElementKind::int32));
    const DeviceBuffer two(payload(bootstrap.rank(), 8, ElementKind::int32));
    first.all_reduce(one.data(), one.data(), 8, ElementKind::int32, ReduceOp::sum, streams[0].get());
    second.all_reduce(two.data(), two.data(), 8, ElementKind::int32, ReduceOp::max, streams[1].get());
    second.wait([&] { return streams[1].is_idle(); });
    first.wait([&] { return streams[0].is_idle(); });
    EXPECT_EQ(one.read(), reduced(3, 8, ElementKind::int32, ReduceOp::sum));
    EXPECT_EQ(two.read(), reduced(3, 8, ElementKind::int32, ReduceOp::max));
  }));
}

TEST(NcclFunctionsOfAnOldLibrary, RefuseWhatItHasNot) {
  const NcclPlan plan("version 2.9.9");
  expect_success(run_ranks(2, {}, [](const NcclRank& rank) {
    const DeviceBuffer buffer(16);
    try {
      rank.communicator.all_reduce(buffer.data(), buffer.data(), 4, ElementKind::float32, ReduceOp::avg,
                                   rank.stream);
      ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::not_available);
      EXPECT_STREQ(error.what(), "NCCL 2.9.9 has no avg; use NCCL 2.10 or later");
    }
  }));
}

}  // namespace
}  // namespace polyring
