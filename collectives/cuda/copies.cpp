#include "collectives/cuda/copies.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "collectives/cuda/check.hpp"
#include "collectives/cuda/devices.hpp"
#include "collectives/cuda/memory.hpp"
#include "collectives/cuda/owners.hpp"
#include "collectives/cuda/poll.hpp"

namespace polyring::cuda {
namespace {

using Clock = std::chrono::steady_clock;

void use(int device) { check(cudaSetDevice(device), "use a GPU (cudaSetDevice)"); }

/// Of the GPU, where the system knows it.
std::optional<int> numa_node(int device) {
  std::array<char, 32> pci{};
  if (cudaDeviceGetPCIBusId(pci.data(), pci.size(), device) != cudaSuccess) return std::nullopt;
  std::string address = pci.data();
  for (char& c : address) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  std::ifstream file("/sys/bus/pci/devices/" + address + "/numa_node");
  int node = -1;
  return file >> node && node >= 0 ? std::optional(node) : std::nullopt;
}

/// Asks for memory of this node; where that is not allowed, it comes from where this thread runs.
void prefer_node(void* memory, std::size_t bytes, int node) {
  constexpr int kPreferred = 1;  // MPOL_PREFERRED of set_mempolicy(2)
  constexpr std::size_t kMostNodes = 1024;
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  std::array<unsigned long, kMostNodes / kBits> nodes{};
  if (index(node) >= kMostNodes) return;
  nodes[index(node) / kBits] = 1UL << (index(node) % kBits);
  syscall(SYS_mbind, memory, bytes, kPreferred, nodes.data(), kMostNodes, 0);
}

/// Pinned memory near a GPU: over another socket copies would be slower.
class NearMemory {
 public:
  NearMemory(std::size_t bytes, int device) : bytes_(bytes) {
    memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) no_memory();
    if (const auto node = numa_node(device)) prefer_node(memory_, bytes, *node);
    std::memset(memory_, 0, bytes);
    const cudaError_t result = cudaHostRegister(memory_, bytes, cudaHostRegisterPortable);
    if (result == cudaSuccess) return;
    munmap(memory_, bytes);
    if (result == cudaErrorMemoryAllocation) no_memory();
    check(result, "pin memory (cudaHostRegister)");
  }
  NearMemory(const NearMemory&) = delete;
  NearMemory& operator=(const NearMemory&) = delete;
  ~NearMemory() {
    if (kept_) return;
    cudaHostUnregister(memory_);
    munmap(memory_, bytes_);
  }

  std::byte* get() const { return static_cast<std::byte*>(memory_); }
  /// A GPU may still use it.
  void keep() { kept_ = true; }

 private:
  [[noreturn]] void no_memory() const {
    throw Error(ExitCode::not_available,
                fmt::format("the host has no {} of memory for copies to a GPU", to_text(Bytes{bytes_})));
  }

  std::size_t bytes_;
  void* memory_ = nullptr;
  bool kept_ = false;
};

/// Words that no other copy has, and that do not repeat.
std::uint64_t word_of(std::uint64_t seed, std::size_t place) {
  return (seed << 40) ^ (0x9e3779b97f4a7c15U * (place + 1));
}

void fill(std::byte* memory, std::size_t bytes, std::uint64_t seed) {
  for (std::size_t place = 0; place < bytes / sizeof(std::uint64_t); ++place) {
    const std::uint64_t word = word_of(seed, place);
    std::memcpy(memory + place * sizeof word, &word, sizeof word);
  }
}

std::uint64_t wrong_bytes(const std::byte* memory, std::size_t bytes, std::uint64_t seed) {
  std::uint64_t wrong = 0;
  for (std::size_t place = 0; place < bytes / sizeof(std::uint64_t); ++place) {
    const std::uint64_t word = word_of(seed, place);
    if (std::memcmp(memory + place * sizeof word, &word, sizeof word) != 0) wrong += sizeof word;
  }
  return wrong;
}

/// One of the copies that are made at once.
struct Lane {
  GpuCopy copy;
  int device = 0;  // whose stream it is on
  bool direct = true;
  std::uint64_t seed = 0;
  std::byte* from = nullptr;
  std::byte* to = nullptr;
  Memory on_from{};  // of a GPU
  Memory on_to{};
  Stream stream{};
  Event begin{};
  Event end{};
  int times = 1;  // in a sample
};

std::string name_of(int place) {
  return place == kHostMemory ? std::string("host memory") : fmt::format("GPU {}", place);
}

class Copies final : public GpuCopies {
 public:
  explicit Copies(const GpuCopyWork& work)
      : work_(work), bytes_(std::max<std::size_t>(work.size.value / kWord, 1) * kWord) {}
  ~Copies() override {
    if (!hung_) return;
    for (auto& [key, memory] : pinned_) memory->keep();
  }

  std::vector<GpuCopyRates> run(std::span<const GpuCopy> at_once) override {
    const CurrentDevice current;
    std::vector<Lane> lanes;
    for (const GpuCopy& copy : at_once) lanes.push_back(make_lane(copy));
    for (Lane& lane : lanes) prepare(lane);
    sample(lanes);  // the first copies find cold caches and unmapped pages
    const std::vector<double> once = sample(lanes);
    const double target = 1e6 * work_.time.value / std::max(1, work_.fewest);
    for (std::size_t i = 0; i < lanes.size(); ++i)
      lanes[i].times =
          std::clamp(static_cast<int>(std::lround(target / std::max(once[i], 1.0))), 1, kMostTimes);
    std::vector<GpuCopyRates> rates(lanes.size());
    const auto began = Clock::now();
    const std::chrono::duration<double> time(work_.time.value);
    for (int number = 0; number < work_.fewest || Clock::now() - began < time; ++number) {
      const std::vector<double> us = sample(lanes);
      for (std::size_t i = 0; i < lanes.size(); ++i)
        rates[i].GBps.push_back(lanes[i].times * static_cast<double>(bytes_) / us[i] / 1e3);
    }
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      rates[i].direct = lanes[i].direct;
      rates[i].wrong_bytes = wrong_in(lanes[i]);
    }
    return rates;
  }

 private:
  static constexpr std::size_t kWord = sizeof(std::uint64_t);
  static constexpr int kMostTimes = 512;

  Lane make_lane(const GpuCopy& copy) {
    Lane lane{.copy = copy, .device = copy.from == kHostMemory ? copy.to : copy.from, .seed = ++seed_};
    if (copy.from != kHostMemory && copy.to != kHostMemory && copy.from != copy.to)
      lane.direct = enable_access(copy.from, copy.to) && enable_access(copy.to, copy.from);
    const auto memory_at = [&](int device, Memory& memory, PinnedFor what) {
      if (device == kHostMemory) return pinned(lane.device, what);
      memory = DeviceHeap::of(device).allocate(Bytes{bytes_});
      return memory.get();
    };
    lane.from = memory_at(copy.from, lane.on_from, PinnedFor::source);
    lane.to = memory_at(copy.to, lane.on_to, PinnedFor::target);
    use(lane.device);
    lane.stream = make_stream();
    lane.begin = make_timed_event();
    lane.end = make_timed_event();
    return lane;
  }

  enum class PinnedFor { source, target, staging };

  std::byte* pinned(int device, PinnedFor what) {
    std::unique_ptr<NearMemory>& memory = pinned_[{device, what}];
    if (!memory) memory = std::make_unique<NearMemory>(bytes_, device);
    return memory->get();
  }

  /// Gives the copy its data.
  void prepare(Lane& lane) {
    if (lane.copy.from == kHostMemory) return fill(lane.from, bytes_, lane.seed);
    std::byte* const data = pinned(lane.device, PinnedFor::staging);
    fill(data, bytes_, lane.seed);
    use(lane.device);
    check(cudaMemcpyAsync(lane.from, data, bytes_, cudaMemcpyHostToDevice, lane.stream.get()),
          "copy to it (cudaMemcpyAsync)");
    finish(lane);
  }

  std::uint64_t wrong_in(Lane& lane) {
    if (lane.copy.to == kHostMemory) return wrong_bytes(lane.to, bytes_, lane.seed);
    std::byte* const data = pinned(lane.device, PinnedFor::staging);
    use(lane.device);
    check(cudaMemcpyAsync(data, lane.to, bytes_, cudaMemcpyDefault, lane.stream.get()),
          "copy from it (cudaMemcpyAsync)");
    finish(lane);
    return wrong_bytes(data, bytes_, lane.seed);
  }

  /// Of each copy how long its times took, in microseconds.
  std::vector<double> sample(std::vector<Lane>& lanes) {
    for (Lane& lane : lanes) {
      use(lane.device);
      check(cudaEventRecord(lane.begin.get(), lane.stream.get()), "record an event (cudaEventRecord)");
      for (int time = 0; time < lane.times; ++time) enqueue(lane);
      check(cudaEventRecord(lane.end.get(), lane.stream.get()), "record an event (cudaEventRecord)");
    }
    std::vector<double> us;
    for (Lane& lane : lanes) {
      wait(lane);
      us.push_back(std::max(microseconds_between(lane.begin.get(), lane.end.get()), 1e-3));
    }
    return us;
  }

  void enqueue(Lane& lane) const {
    const GpuCopy& copy = lane.copy;
    if (copy.from != kHostMemory && copy.to != kHostMemory && copy.from != copy.to) {
      check(cudaMemcpyPeerAsync(lane.to, copy.to, lane.from, copy.from, bytes_, lane.stream.get()),
            fmt::format("copy to GPU {} (cudaMemcpyPeerAsync)", copy.to));
      return;
    }
    check(cudaMemcpyAsync(lane.to, lane.from, bytes_, cudaMemcpyDefault, lane.stream.get()),
          fmt::format("copy from {} to {} (cudaMemcpyAsync)", name_of(copy.from), name_of(copy.to)));
  }

  void finish(Lane& lane) {
    check(cudaEventRecord(lane.end.get(), lane.stream.get()), "record an event (cudaEventRecord)");
    wait(lane);
  }

  void wait(Lane& lane) {
    use(lane.device);
    const auto over = [&] {
      return is_over(cudaEventQuery(lane.end.get()), "finish a copy (cudaEventQuery)");
    };
    if (over_within(work_.limit, true, over)) return;
    hung_ = true;
    throw Error(ExitCode::timeout,
                fmt::format("a copy from {} to {} did not end within {}", name_of(lane.copy.from),
                            name_of(lane.copy.to), to_text(work_.limit)));
  }

  GpuCopyWork work_;
  std::size_t bytes_;
  std::uint64_t seed_ = 0;
  bool hung_ = false;
  std::map<std::pair<int, PinnedFor>, std::unique_ptr<NearMemory>> pinned_;  // near a GPU
};

}  // namespace

bool enable_access(int device, int other) {
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, device, other), "ask whether GPUs are peers (cudaDeviceCanAccessPeer)");
  if (can == 0) return false;
  use(device);
  const cudaError_t result = cudaDeviceEnablePeerAccess(other, 0);
  if (result == cudaErrorTooManyPeers) {
    cudaGetLastError();
    return false;
  }
  if (result == cudaErrorPeerAccessAlreadyEnabled)
    cudaGetLastError();
  else
    check(result, fmt::format("access the memory of GPU {} (cudaDeviceEnablePeerAccess)", other));
  return true;
}

std::unique_ptr<GpuCopies> make_copies(const GpuCopyWork& work) { return std::make_unique<Copies>(work); }

}  // namespace polyring::cuda
