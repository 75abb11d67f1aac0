// The C library on memory of GPUs: operations that are run, and those enqueued on a CUDA stream. Ranks are
// processes.
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>

#include "tests/collectives/library/ranks.hpp"

namespace polyring::testing {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kCount = 10'007;

void cuda(cudaError_t result) { ASSERT_EQ(result, cudaSuccess) << cudaGetErrorString(result); }

/// Each in a process of its own, before anything has asked CUDA. What one expects in vain is printed, and
/// fails.
void in_processes(const std::function<void(int)>& action) {
  std::vector<pid_t> children;
  for (int rank = 0; rank < kRanks; ++rank) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      action(rank);
      std::fflush(nullptr);
      _exit(::testing::Test::HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  for (std::size_t rank = 0; rank < children.size(); ++rank) {
    int status = 0;
    ASSERT_EQ(waitpid(children[rank], &status, 0), children[rank]);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "rank " << rank << " has failed";
  }
}

/// An allgather of processes, in memory that they share.
struct SharedGroup {
  pthread_barrier_t barrier;
  std::array<char, 1 << 16> bytes;

  static SharedGroup* make() {
    void* const memory =
        mmap(nullptr, sizeof(SharedGroup), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    auto* const group = new (memory) SharedGroup;
    pthread_barrierattr_t shared;
    pthread_barrierattr_init(&shared);
    pthread_barrierattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&group->barrier, &shared, kRanks);
    return group;
  }

  struct Member {
    SharedGroup* group;
    int rank;
  };
  static int allgather(void* context, const void* own, void* all, size_t bytes) {
    const auto [group, rank] = *static_cast<Member*>(context);
    if (group == nullptr) std::abort();  // the creation is over
    std::memcpy(group->bytes.data() + static_cast<std::size_t>(rank) * bytes, own, bytes);
    pthread_barrier_wait(&group->barrier);
    std::memcpy(all, group->bytes.data(), kRanks * bytes);
    pthread_barrier_wait(&group->barrier);
    return 0;
  }
};

class CLibraryOnGpus : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_OK(polyring_get_unique_id(&id_)); }

  polyring_comm create(int rank, int check, double timeout = 60) const {
    polyring_options options = POLYRING_OPTIONS_DEFAULT;
    options.gpu = rank;
    options.timeout = timeout;
    options.check = check;
    polyring_comm comm = POLYRING_COMM_NULL;
    EXPECT_OK(polyring_comm_create(&comm, &id_, rank, kRanks, &options));
    return comm;
  }

  static float* allocate(polyring_comm comm, const std::vector<float>& values) {
    void* memory = nullptr;
    EXPECT_OK(polyring_mem_alloc(comm, values.size() * sizeof(float), &memory));
    cuda(cudaMemcpy(memory, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
    cuda(cudaDeviceSynchronize());  // from pageable memory, a copy may return before it is over
    return static_cast<float*>(memory);
  }

  static std::vector<float> values_of(const float* memory, std::size_t count) {
    std::vector<float> values(count);
    cuda(cudaMemcpy(values.data(), memory, count * sizeof(float), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  polyring_unique_id id_{};
};

std::vector<float> payload(int rank, std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>((static_cast<std::size_t>(rank) * 5 + i) % 11);
  return values;
}

std::vector<float> sums(std::size_t count) {
  std::vector<float> result(count);
  for (int rank = 0; rank < kRanks; ++rank) {
    const std::vector<float> other = payload(rank, count);
    std::transform(result.begin(), result.end(), other.begin(), result.begin(), std::plus<>());
  }
  return result;
}

TEST_F(CLibraryOnGpus, OperationsThatAreRun) {
  in_processes([this](int rank) {
    const polyring_comm comm = create(rank, 1);
    const char* transport = nullptr;
    EXPECT_OK(polyring_comm_transport(comm, &transport));
    EXPECT_NE(std::string(transport).find("memory"), std::string::npos) << transport;
    float* const data = allocate(comm, payload(rank, kCount));
    EXPECT_OK(polyring_allreduce(comm, data, data, kCount, POLYRING_FLOAT32, POLYRING_SUM));
    EXPECT_EQ(values_of(data, kCount), sums(kCount));
    polyring_request request = POLYRING_REQUEST_NULL;
    EXPECT_OK(polyring_start_allreduce(comm, data, data, kCount, POLYRING_FLOAT32, POLYRING_MAX, &request));
    EXPECT_OK(polyring_wait(&request));
    EXPECT_EQ(values_of(data, kCount), sums(kCount));
    // An odd number of halves goes through host memory.
    for (const std::size_t halves : {std::size_t{2 * kCount}, std::size_t{2 * kCount - 1}}) {
      float* const other = allocate(comm, payload(rank, kCount));
      EXPECT_OK(polyring_broadcast(comm, other, halves, POLYRING_FLOAT16, 1));
      const std::vector<float> expected = payload(1, kCount);
      const std::vector<float> found = values_of(other, kCount);
      EXPECT_EQ(std::memcmp(found.data(), expected.data(), halves * sizeof(std::uint16_t)), 0);
    }
    EXPECT_OK(polyring_barrier(comm));
    EXPECT_OK(polyring_comm_free(comm));
  });
}

TEST_F(CLibraryOnGpus, OperationsOnAStream) {
  in_processes([this](int rank) {
    const polyring_comm comm = create(rank, 0);
    cudaStream_t stream = nullptr;
    cuda(cudaStreamCreate(&stream));
    constexpr std::size_t kAll = kRanks * kCount;
    float* const whole = allocate(comm, payload(rank, kAll));
    float* const block = allocate(comm, std::vector<float>(kCount));
    float* const gathered = allocate(comm, std::vector<float>(kAll));
    EXPECT_OK(
        polyring_enqueue_reduce_scatter(comm, whole, block, kCount, POLYRING_FLOAT32, POLYRING_SUM, stream));
    EXPECT_OK(polyring_enqueue_allgather(comm, block, gathered, kCount, POLYRING_FLOAT32, stream));
    // Behind them on the stream, and read back behind that.
    EXPECT_OK(polyring_enqueue_allreduce(comm, whole, whole, kAll, POLYRING_FLOAT32, POLYRING_SUM, stream));
    std::vector<float> found(kAll);
    cuda(cudaMemcpyAsync(found.data(), whole, kAll * sizeof(float), cudaMemcpyDeviceToHost, stream));
    cuda(cudaStreamSynchronize(stream));
    EXPECT_EQ(found, sums(kAll));
    EXPECT_EQ(values_of(gathered, kAll), sums(kAll));
    for (int i = 0; i < 3; ++i)
      EXPECT_OK(polyring_enqueue_allreduce(comm, whole, whole, kAll, POLYRING_FLOAT32, POLYRING_SUM, stream));
    // What is run comes behind what was enqueued: each makes kRanks times as much.
    EXPECT_OK(polyring_allreduce(comm, whole, whole, kAll, POLYRING_FLOAT32, POLYRING_SUM));
    EXPECT_OK(polyring_enqueued_wait(comm));
    std::vector<float> expected = sums(kAll);
    for (float& sum : expected) sum *= 81;
    EXPECT_EQ(values_of(whole, kAll), expected);
    // A broadcast, too: at the root of what the stream has made by then.
    EXPECT_OK(polyring_enqueue_allreduce(comm, whole, whole, kAll, POLYRING_FLOAT32, POLYRING_SUM, stream));
    EXPECT_OK(polyring_broadcast(comm, whole, kAll, POLYRING_FLOAT32, 1));
    for (float& sum : expected) sum *= kRanks;
    EXPECT_EQ(values_of(whole, kAll), expected);
    EXPECT_EQ(
        polyring_enqueue_allreduce(comm, block, block, kCount + 1, POLYRING_FLOAT32, POLYRING_SUM, stream),
        POLYRING_ERROR_ARGUMENT)
        << "longer than the memory";
    float value = 1;
    EXPECT_EQ(polyring_enqueue_allreduce(comm, &value, &value, 1, POLYRING_FLOAT32, POLYRING_SUM, stream),
              POLYRING_ERROR_ARGUMENT);
    EXPECT_NE(std::string(polyring_error_text()).find("not all polyring_mem_alloc()'s"), std::string::npos);
    cuda(cudaStreamDestroy(stream));
    EXPECT_OK(polyring_comm_free(comm));
  });
}

/// Other processes cannot map it, so that operations copy it.
TEST_F(CLibraryOnGpus, MemoryThatTheProgramHasAllocated) {
  in_processes([this](int rank) {
    const polyring_comm comm = create(rank, 1);
    cudaStream_t stream = nullptr;
    cuda(cudaStreamCreate(&stream));
    constexpr std::size_t kAll = kRanks * kCount;
    float* const source = allocate(comm, payload(rank, kAll));
    float* whole = nullptr;  // behind the begin of its memory
    cuda(cudaMalloc(reinterpret_cast<void**>(&whole), (kAll + 5) * sizeof(float)));
    whole += 5;
    cuda(cudaLaunchHostFunc(
        stream, [](void*) { usleep(50'000); }, nullptr));
    cuda(cudaMemcpyAsync(whole, source, kAll * sizeof(float), cudaMemcpyDeviceToDevice, stream));
    EXPECT_OK(polyring_stream_wait(comm, stream));
    float* const mine = whole + static_cast<std::size_t>(rank) * kCount;
    EXPECT_OK(polyring_reduce_scatter(comm, whole, mine, kCount, POLYRING_FLOAT32, POLYRING_SUM));
    EXPECT_OK(polyring_allgather(comm, mine, whole, kCount, POLYRING_FLOAT32));
    EXPECT_EQ(values_of(whole, kAll), sums(kAll));
    float* const sent = rank == 1 ? source : whole;
    EXPECT_OK(polyring_broadcast(comm, sent, kAll, POLYRING_FLOAT32, 1));
    EXPECT_EQ(values_of(sent, kAll), payload(1, kAll));
    polyring_request request = POLYRING_REQUEST_NULL;
    EXPECT_OK(polyring_start_allreduce(comm, sent, whole, kAll, POLYRING_FLOAT32, POLYRING_MAX, &request));
    EXPECT_OK(polyring_wait(&request));
    EXPECT_EQ(values_of(whole, kAll), payload(1, kAll));
    // Nothing was done, so that the communicator goes on.
    float value = 1;
    EXPECT_EQ(polyring_allreduce(comm, &value, &value, 1, POLYRING_FLOAT32, POLYRING_SUM),
              POLYRING_ERROR_ARGUMENT);
    EXPECT_NE(std::string(polyring_error_text()).find("the input is in host memory"), std::string::npos);
    EXPECT_OK(polyring_barrier(comm));
    cuda(cudaStreamDestroy(stream));
    EXPECT_OK(polyring_comm_free(comm));
  });
}

/// The ranks meet once more at the first operation on a stream, without what the program gave for the
/// creation.
TEST_F(CLibraryOnGpus, AGroupIsUsedByTheCreationAlone) {
  SharedGroup* const shared = SharedGroup::make();
  in_processes([shared](int rank) {
    SharedGroup::Member member{shared, rank};
    const polyring_group group{&member, SharedGroup::allgather};
    polyring_options options = POLYRING_OPTIONS_DEFAULT;
    options.gpu = rank;
    polyring_comm comm = POLYRING_COMM_NULL;
    ASSERT_OK(polyring_comm_create_from_group(&comm, &group, rank, kRanks, &options));
    member.group = nullptr;
    float* const data = allocate(comm, payload(rank, kCount));
    ASSERT_OK(polyring_enqueue_allreduce(comm, data, data, kCount, POLYRING_FLOAT32, POLYRING_SUM, nullptr));
    ASSERT_OK(polyring_enqueued_wait(comm));
    EXPECT_EQ(values_of(data, kCount), sums(kCount));
    EXPECT_OK(polyring_comm_free(comm));
  });
}

/// The stream alone would wait for ever.
TEST_F(CLibraryOnGpus, ARankThatDoesNotEnqueue) {
  in_processes([this](int rank) {
    const polyring_comm comm = create(rank, 0, 1);
    cudaStream_t stream = nullptr;
    cuda(cudaStreamCreate(&stream));
    float* const data = allocate(comm, payload(rank, kCount));
    EXPECT_OK(polyring_enqueue_allreduce(comm, data, data, kCount, POLYRING_FLOAT32, POLYRING_SUM, stream));
    EXPECT_OK(polyring_enqueued_wait(comm));
    if (rank == 2) _exit(0);
    EXPECT_OK(polyring_enqueue_allreduce(comm, data, data, kCount, POLYRING_FLOAT32, POLYRING_SUM, stream));
    const polyring_result result = polyring_enqueued_wait(comm);
    EXPECT_EQ(result, POLYRING_ERROR_TIMEOUT) << polyring_error_text();
    EXPECT_NE(std::string(polyring_error_text()).find("rank "), std::string::npos) << polyring_error_text();
    EXPECT_EQ(polyring_enqueued_wait(comm), result);
    EXPECT_OK(polyring_comm_free(comm));
  });
}

/// CUDA wants memory closed by others before it is freed, and nobody tells them.
TEST_F(CLibraryOnGpus, AProgramsOwnMemoryIsNotRegistered) {
  in_processes([this](int rank) {
    const polyring_comm comm = create(rank, 0);
    constexpr std::size_t kBytes = std::size_t{1} << 20;
    void* memory = nullptr;
    cuda(cudaMalloc(&memory, kBytes));
    const std::unique_ptr<void, decltype(&std::free)> on_host(std::aligned_alloc(4096, kBytes), &std::free);
    for (void* const buffer : {memory, on_host.get()}) {
      EXPECT_EQ(polyring_mem_register(comm, buffer, kBytes), POLYRING_ERROR_NOT_AVAILABLE);
      EXPECT_NE(std::string(polyring_error_text()).find("take memory that the communicator allocates"),
                std::string::npos)
          << polyring_error_text();
    }
    float* const data = allocate(comm, payload(rank, kCount));  // it is as before
    EXPECT_OK(polyring_allreduce(comm, data, data, kCount, POLYRING_FLOAT32, POLYRING_SUM));
    EXPECT_EQ(values_of(data, kCount), sums(kCount));
    EXPECT_OK(polyring_comm_free(comm));
    cuda(cudaFree(memory));
  });
}

TEST_F(CLibraryOnGpus, GpusThatAreNotThere) {
  in_processes([](int rank) {
    if (rank > 0) return;
    polyring_unique_id id{};
    ASSERT_OK(polyring_get_unique_id(&id));
    polyring_options options = POLYRING_OPTIONS_DEFAULT;
    polyring_comm comm = POLYRING_COMM_NULL;
    options.gpu = 99;
    EXPECT_EQ(polyring_comm_create(&comm, &id, 0, 1, &options), POLYRING_ERROR_NOT_AVAILABLE);
    EXPECT_NE(std::string(polyring_error_text()).find("no GPU 99: this process sees"), std::string::npos)
        << polyring_error_text();
    options.gpu = -2;
    EXPECT_EQ(polyring_comm_create(&comm, &id, 0, 1, &options), POLYRING_ERROR_ARGUMENT);
    options.gpu = -1;
    ASSERT_OK(polyring_comm_create(&comm, &id, 0, 1, &options));
    float value = 1;
    EXPECT_EQ(polyring_enqueue_allreduce(comm, &value, &value, 1, POLYRING_FLOAT32, POLYRING_SUM, nullptr),
              POLYRING_ERROR_ARGUMENT);
    EXPECT_EQ(polyring_stream_wait(comm, nullptr), POLYRING_ERROR_ARGUMENT);
    EXPECT_OK(polyring_comm_free(comm));
  });
}

}  // namespace
}  // namespace polyring::testing
