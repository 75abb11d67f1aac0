// The C library as a program sees it: nothing but polyring.h.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <numeric>

#include "base/index.hpp"
#include "tests/collectives/library/ranks.hpp"

namespace polyring::testing {
namespace {

constexpr int kRanks[] = {1, 2, 3, 4, 7};
constexpr std::size_t kCounts[] = {1, 2, 3, 1000, 65537};

/// Small whole numbers, exact in every type, and their sums as well.
template <typename Value>
std::vector<Value> payload(int rank, std::size_t count) {
  std::vector<Value> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<Value>((static_cast<std::size_t>(rank) * 5 + i) % 11) - 3;
  return values;
}

template <typename Value>
Value combined(polyring_op op, Value a, Value b) {
  switch (op) {
    case POLYRING_PROD:
      return a * b;
    case POLYRING_MIN:
      return std::min(a, b);
    case POLYRING_MAX:
      return std::max(a, b);
    default:
      return a + b;
  }
}

template <typename Value>
std::vector<Value> reference(int ranks, std::size_t count, polyring_op op) {
  std::vector<Value> result = payload<Value>(0, count);
  for (int rank = 1; rank < ranks; ++rank) {
    const std::vector<Value> other = payload<Value>(rank, count);
    for (std::size_t i = 0; i < count; ++i) result[i] = combined(op, result[i], other[i]);
  }
  if (op == POLYRING_AVG)
    for (Value& value : result) value = static_cast<Value>(value / static_cast<Value>(ranks));
  return result;
}

template <typename Value>
void check_allreduces(polyring_comm comm, int rank, int ranks, polyring_type type) {
  for (const polyring_op op : {POLYRING_SUM, POLYRING_PROD, POLYRING_MIN, POLYRING_MAX, POLYRING_AVG}) {
    for (const std::size_t count : kCounts) {
      const std::vector<Value> expected = reference<Value>(ranks, count, op);
      const std::vector<Value> input = payload<Value>(rank, count);
      std::vector<Value> output(count);
      ASSERT_OK(polyring_allreduce(comm, input.data(), output.data(), count, type, op));
      ASSERT_EQ(output, expected) << ranks << " ranks, " << count << " elements, operation " << op;
      output = input;
      ASSERT_OK(polyring_allreduce(comm, output.data(), output.data(), count, type, op));
      ASSERT_EQ(output, expected) << "in place";
    }
  }
}

TEST(CLibrary, AllreducesOfEveryOperation) {
  for (const int ranks : kRanks) {
    with_ranks(ranks, nullptr, [&](int rank, polyring_comm comm) {
      check_allreduces<float>(comm, rank, ranks, POLYRING_FLOAT32);
      check_allreduces<double>(comm, rank, ranks, POLYRING_FLOAT64);
      check_allreduces<std::int32_t>(comm, rank, ranks, POLYRING_INT32);
      check_allreduces<std::int64_t>(comm, rank, ranks, POLYRING_INT64);
    });
  }
}

/// float16's 1, 2, 3 are 0x3c00, 0x4000, 0x4200; bfloat16's 0x3f80, 0x4000, 0x4040 (IEEE 754; bfloat16 is the
/// upper half of float32).
TEST(CLibrary, AllreducesOfHalves) {
  with_ranks(3, nullptr, [&](int rank, polyring_comm comm) {
    constexpr std::uint16_t kHalf[] = {0x3c00, 0x4000, 0x4200};
    constexpr std::uint16_t kBrain[] = {0x3f80, 0x4000, 0x4040};
    std::vector<std::uint16_t> values(777, kHalf[rank]);
    ASSERT_OK(polyring_allreduce(comm, values.data(), values.data(), values.size(), POLYRING_FLOAT16,
                                 POLYRING_AVG));
    EXPECT_EQ(values, std::vector<std::uint16_t>(777, kHalf[1]));
    values.assign(777, kBrain[rank]);
    ASSERT_OK(polyring_allreduce(comm, values.data(), values.data(), values.size(), POLYRING_BFLOAT16,
                                 POLYRING_MAX));
    EXPECT_EQ(values, std::vector<std::uint16_t>(777, kBrain[2]));
  });
}

TEST(CLibrary, BlocksOfRanks) {
  for (const int ranks : kRanks) {
    for (const Meeting meeting : kMeetings) {
      with_ranks(
          ranks, nullptr,
          [&](int rank, polyring_comm comm) {
            for (const std::size_t count : kCounts) {
              const std::size_t all = count * static_cast<std::size_t>(ranks);
              const std::size_t begin = count * static_cast<std::size_t>(rank);
              const std::vector<float> sums = reference<float>(ranks, all, POLYRING_SUM);
              std::vector<float> whole = payload<float>(rank, all);
              std::vector<float> block(count);
              ASSERT_OK(polyring_reduce_scatter(comm, whole.data(), block.data(), count, POLYRING_FLOAT32,
                                                POLYRING_SUM));
              for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(block[i], sums[begin + i]);
              ASSERT_OK(polyring_reduce_scatter(comm, whole.data(), whole.data() + begin, count,
                                                POLYRING_FLOAT32, POLYRING_SUM));
              for (std::size_t i = 0; i < count; ++i)
                ASSERT_EQ(whole[begin + i], sums[begin + i]) << "in place";
              std::vector<float> gathered(all);
              ASSERT_OK(polyring_allgather(comm, block.data(), gathered.data(), count, POLYRING_FLOAT32));
              ASSERT_EQ(gathered, sums);
              ASSERT_OK(
                  polyring_allgather(comm, whole.data() + begin, whole.data(), count, POLYRING_FLOAT32));
              ASSERT_EQ(whole, sums) << "in place";
            }
          },
          meeting);
    }
  }
}

/// Bytes that mean nothing as a number must come as they are; odd numbers of halves, and at odd addresses of
/// them.
TEST(CLibrary, BroadcastsKeepEveryBit) {
  for (const int ranks : kRanks) {
    with_ranks(ranks, nullptr, [&](int rank, polyring_comm comm) {
      for (int root = 0; root < ranks; ++root) {
        for (const std::size_t count : kCounts) {
          std::vector<std::uint16_t> expected(count);
          for (std::size_t i = 0; i < count; ++i)
            expected[i] = static_cast<std::uint16_t>(0xfff1 + i * 7919 + static_cast<std::size_t>(root));
          std::vector<std::uint16_t> values(count + 2, 0xabcd);
          std::uint16_t* const data = values.data() + 1;
          if (rank == root) std::copy(expected.begin(), expected.end(), data);
          ASSERT_OK(polyring_broadcast(comm, data, count, POLYRING_FLOAT16, root));
          ASSERT_TRUE(std::equal(expected.begin(), expected.end(), data))
              << ranks << " ranks, root " << root << ", " << count;
          ASSERT_EQ(values.front(), 0xabcd);
          ASSERT_EQ(values.back(), 0xabcd);
        }
      }
      std::vector<double> numbers(100, rank == 0 ? std::numeric_limits<double>::signaling_NaN() : -1.0);
      ASSERT_OK(polyring_broadcast(comm, numbers.data(), numbers.size(), POLYRING_FLOAT64, 0));
      for (const double number : numbers) ASSERT_TRUE(std::isnan(number));
    });
  }
}

TEST(CLibrary, BroadcastsFromAllRanksAtOnce) {
  for (const int ranks : kRanks) {
    with_ranks(ranks, nullptr, [&](int rank, polyring_comm comm) {
      constexpr std::size_t kCount = 10'001;  // of halves: no whole words
      std::vector<std::vector<std::uint16_t>> values(index(ranks));
      std::vector<polyring_request> requests(index(ranks));
      for (int root = 0; root < ranks; ++root) {
        const auto own = static_cast<std::uint16_t>(root == rank ? 0x7c01 + root : 0);
        values[index(root)].assign(kCount, own);
        ASSERT_OK(polyring_start_broadcast(comm, values[index(root)].data(), kCount - index(root),
                                           POLYRING_BFLOAT16, root, &requests[index(root)]));
      }
      for (int root = ranks - 1; root >= 0; --root) {
        ASSERT_OK(polyring_wait(&requests[index(root)]));
        for (std::size_t i = 0; i < kCount - index(root); ++i)
          ASSERT_EQ(values[index(root)][i], 0x7c01 + root);
      }
    });
  }
}

TEST(CLibrary, AStartedBarrierIsOverWhenAllHaveStartedIt) {
  std::atomic<bool> last_may_start = false;
  with_ranks(3, nullptr, [&](int rank, polyring_comm comm) {
    polyring_request request = POLYRING_REQUEST_NULL;
    int done = 0;
    while (rank == 2 && !last_may_start) std::this_thread::yield();
    ASSERT_OK(polyring_start_barrier(comm, &request));
    if (rank == 0) {
      for (int i = 0; i < 1000; ++i) {
        ASSERT_OK(polyring_test(&request, &done));
        ASSERT_EQ(done, 0);
      }
      last_may_start = true;
    }
    ASSERT_OK(polyring_wait(&request));
    EXPECT_EQ(request, POLYRING_REQUEST_NULL);
  });
}

TEST(CLibrary, OperationsAtOnceEndInAnyOrder) {
  constexpr int kOperations = 9;
  constexpr std::size_t kCount = 20011;
  with_ranks(4, nullptr, [&](int rank, polyring_comm comm) {
    std::vector<std::vector<double>> values(kOperations);
    std::vector<polyring_request> requests(kOperations);
    for (int i = 0; i < kOperations; ++i) {
      values[static_cast<std::size_t>(i)].assign(kCount + static_cast<std::size_t>(i), rank + i);
      std::vector<double>& of = values[static_cast<std::size_t>(i)];
      ASSERT_OK(polyring_start_allreduce(comm, of.data(), of.data(), of.size(), POLYRING_FLOAT64,
                                         POLYRING_SUM, &requests[static_cast<std::size_t>(i)]));
    }
    // Each rank waits in another order; the first by asking.
    for (int i = 0; i < kOperations; ++i) {
      polyring_request& request = requests[static_cast<std::size_t>((i * (rank + 1) + rank) % kOperations)];
      if (i == 0) {
        for (int done = 0; done == 0;) ASSERT_OK(polyring_test(&request, &done));
        EXPECT_EQ(request, POLYRING_REQUEST_NULL);
      } else {
        ASSERT_OK(polyring_wait(&request));
      }
    }
    for (polyring_request& request : requests) ASSERT_OK(polyring_wait(&request));
    for (int i = 0; i < kOperations; ++i)
      for (const double value : values[static_cast<std::size_t>(i)]) ASSERT_EQ(value, 6 + 4 * i);
  });
}

TEST(CLibrary, SeveralCommunicatorsInSeveralThreads) {
  constexpr int kCommunicators = 3;
  std::vector<std::jthread> groups;
  for (int i = 0; i < kCommunicators; ++i) {
    groups.emplace_back([i] {
      with_ranks(2, nullptr, [&](int rank, polyring_comm comm) {
        for (int round = 0; round < 200; ++round) {
          std::vector<std::int32_t> values(static_cast<std::size_t>(17 * (i + 1)), rank + round);
          ASSERT_OK(polyring_allreduce(comm, values.data(), values.data(), values.size(), POLYRING_INT32,
                                       POLYRING_SUM));
          for (const std::int32_t value : values) ASSERT_EQ(value, 1 + 2 * round);
        }
      });
    });
  }
}

/// A thread of one rank starts, another waits: calls wait for each other.
TEST(CLibrary, OneCommunicatorInSeveralThreads) {
  with_ranks(2, nullptr, [&](int rank, polyring_comm comm) {
    std::vector<float> values(5000, static_cast<float>(rank));
    polyring_request request = POLYRING_REQUEST_NULL;
    std::jthread([&] {
      ASSERT_OK(polyring_start_allreduce(comm, values.data(), values.data(), values.size(), POLYRING_FLOAT32,
                                         POLYRING_SUM, &request));
    }).join();
    std::jthread([&] { ASSERT_OK(polyring_wait(&request)); }).join();
    for (const float value : values) ASSERT_EQ(value, 1);
  });
}

TEST(CLibrary, MemoryThatPeersReach) {
  with_ranks(3, nullptr, [&](int rank, polyring_comm comm) {
    constexpr std::size_t kCount = 100'000;
    void* memory = nullptr;
    ASSERT_OK(polyring_mem_alloc(comm, kCount * sizeof(float), &memory));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 4096, 0u);
    auto* const values = static_cast<float*>(memory);
    std::fill_n(values, kCount, static_cast<float>(rank));
    ASSERT_OK(polyring_allreduce(comm, values, values, kCount, POLYRING_FLOAT32, POLYRING_SUM));
    for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(values[i], 3);
    EXPECT_OK(polyring_barrier(comm));
    EXPECT_OK(polyring_mem_free(comm, memory));
    EXPECT_EQ(polyring_mem_free(comm, memory), POLYRING_ERROR_ARGUMENT);
    EXPECT_OK(polyring_mem_free(comm, nullptr));
    ASSERT_OK(polyring_mem_alloc(comm, 0, &memory));  // freed with the communicator
  });
}

TEST(CLibrary, TellsWhatACommunicatorIs) {
  polyring_options options = POLYRING_OPTIONS_DEFAULT;
  options.transport = POLYRING_TRANSPORT_NETWORK;
  options.interface_name = "lo";
  with_ranks(2, &options, [&](int rank, polyring_comm comm) {
    int number = -1;
    EXPECT_OK(polyring_comm_rank(comm, &number));
    EXPECT_EQ(number, rank);
    EXPECT_OK(polyring_comm_size(comm, &number));
    EXPECT_EQ(number, 2);
    EXPECT_OK(polyring_comm_hosts(comm, &number));
    EXPECT_EQ(number, 1);
    const char* planning = nullptr;
    EXPECT_OK(polyring_comm_planning(comm, &planning));
    EXPECT_STREQ(planning, "by rules, since all ranks share the memory of one host");
    const char* transport = nullptr;
    EXPECT_OK(polyring_comm_transport(comm, &transport));
    EXPECT_STREQ(transport, "TCP by lo");
    std::vector<float> values(1000, 1);
    EXPECT_OK(polyring_allreduce(comm, values.data(), values.data(), values.size(), POLYRING_FLOAT32,
                                 POLYRING_SUM));
    EXPECT_EQ(values, std::vector<float>(1000, 2));
  });
}

/// Some hundred communicators leave no descriptor, and no thread.
TEST(CLibrary, CommunicatorsLeaveNothing) {
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator{});
  };
  const auto threads = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/task"),
                         std::filesystem::directory_iterator{});
  };
  with_ranks(2, nullptr, [](int, polyring_comm) {});
  const auto descriptors_before = descriptors();
  const auto threads_before = threads();
  ThreadGroup group(2);
  each_rank(2, [&](int rank) {
    for (int i = 0; i < 300; ++i) {
      const polyring_group own = group.of_rank(rank);
      polyring_comm comm = POLYRING_COMM_NULL;
      ASSERT_OK(polyring_comm_create_from_group(&comm, &own, rank, 2, nullptr));
      std::int32_t value = rank;
      ASSERT_OK(polyring_allreduce(comm, &value, &value, 1, POLYRING_INT32, POLYRING_SUM));
      ASSERT_EQ(value, 1);
      ASSERT_OK(polyring_comm_free(comm));
    }
  });
  EXPECT_EQ(descriptors(), descriptors_before);
  EXPECT_EQ(threads(), threads_before);
}

}  // namespace
}  // namespace polyring::testing
