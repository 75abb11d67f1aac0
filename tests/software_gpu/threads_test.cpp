// Ranks as threads, each with a device: what they share in the software GPU is in order, and their results
// too.

#include <array>
#include <barrier>
#include <thread>
#include <vector>

#include "tests/software_gpu/conformance/launches.hpp"
#include "tests/software_gpu/scenario.hpp"

namespace polyring::software_gpu {
namespace {

constexpr int kRanks = 4;
constexpr int kRounds = 20;
constexpr unsigned kWords = 1000;

struct Rank {
  unsigned* words;
  cudaStream_t stream;
  cudaEvent_t done;
};

struct Ring {
  std::array<Rank, kRanks> ranks{};
  std::barrier<> barrier{kRanks};
};

void set_up(Ring& ring, int number) {
  Rank& rank = ring.ranks[static_cast<std::size_t>(number)];
  OK(cudaSetDevice(number));
  for (int peer = 0; peer < kRanks; ++peer)
    if (peer != number) OK(cudaDeviceEnablePeerAccess(peer, 0));
  rank.words = device_words(kWords);
  rank.stream = new_stream();
  OK(cudaEventCreateWithFlags(&rank.done, cudaEventDisableTiming));
  OK(cudaDeviceSynchronize());
  OK(cudaEventRecord(rank.done, rank.stream));
}

/// In each round, each rank's words become its left neighbour's plus 1, in turn, so that they count up.
void go_round(Ring& ring, int number) {
  set_up(ring, number);
  ring.barrier.arrive_and_wait();
  const Rank& rank = ring.ranks[static_cast<std::size_t>(number)];
  const Rank& left = ring.ranks[static_cast<std::size_t>((number + kRanks - 1) % kRanks)];
  for (int turn = 0; turn < kRounds * kRanks; ++turn) {
    if (turn % kRanks == number) {
      OK(cudaStreamWaitEvent(rank.stream, left.done, 0));
      launch_add({rank.words, left.words, 1, kWords}, rank.stream);
      OK(cudaGetLastError());
      OK(cudaEventRecord(rank.done, rank.stream));
    }
    ring.barrier.arrive_and_wait();
  }
  std::vector<unsigned> words(kWords);
  OK(cudaMemcpyAsync(words.data(), rank.words, kWords * sizeof(unsigned), cudaMemcpyDeviceToHost,
                     rank.stream));
  OK(cudaStreamSynchronize(rank.stream));
  const auto expected = static_cast<unsigned>((kRounds - 1) * kRanks + number + 1);
  for (const unsigned word : words) CHECK(word == expected);
  ring.barrier.arrive_and_wait();
  OK(cudaEventDestroy(rank.done));
  OK(cudaStreamDestroy(rank.stream));
  OK(cudaFree(rank.words));
}

void ring_of_threads() {
  Ring ring;
  std::vector<std::thread> threads;
  for (int number = 0; number < kRanks; ++number) threads.emplace_back(go_round, std::ref(ring), number);
  for (std::thread& thread : threads) thread.join();
}

TEST(Threads, RingOverPeers) {
  for (const char* plan : {"", "delays seed 1 up-to 300us one-in 2", "delays seed 2 up-to 300us one-in 2"})
    EXPECT_GOES_WELL(plan, ring_of_threads) << plan;
}

void race_of_streams() {
  unsigned* const words = device_words(kWords);
  OK(cudaDeviceSynchronize());
  const cudaStream_t first = new_stream(), second = new_stream();
  for (int turn = 0; turn < 50; ++turn) {
    launch_add({words, words, 1, kWords}, first);
    launch_add({words, words, 1, kWords}, second);
  }
  OK(cudaDeviceSynchronize());
}

// ThreadSanitizer sees what kernels do in streams that are not ordered.
#ifdef __SANITIZE_THREAD__
constexpr const char* kReport = "data race";
#else
constexpr const char* kReport = "";
#endif

TEST(Threads, RaceOfStreams) {
  EXPECT_EXIT(
      run("", race_of_streams), [](int) { return true; }, kReport);
}

}  // namespace
}  // namespace polyring::software_gpu
