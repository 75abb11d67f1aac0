#include "collectives/cuda/peers.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/random_token.hpp"
#include "collectives/cuda/check.hpp"

namespace polyring::cuda {
namespace {

struct Introduction {
  std::uint64_t process = 0;
  int device = 0;          // as its process counts
  std::uint32_t word = 0;  // what stands at `location`
  GpuLocation location;
  int host = 0;
  std::array<char, sizeof(cudaUUID_t)> gpu{};
};

std::array<char, sizeof(cudaUUID_t)> id_of(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "say what it is (cudaGetDeviceProperties)");
  return std::to_array(properties.uuid.bytes);
}

std::string hexadecimal(std::span<const char> bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

/// Who has whose GPU.
void find_shared_gpus(Peers& peers, Rank rank, std::span<const Introduction> all) {
  const Introduction& own = all[index(rank)];
  peers.own_id = hexadecimal(own.gpu);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t j = 0; j < i && peers.share_gpu.empty(); ++j) {
      if (all[i].host != all[j].host || all[i].gpu != all[j].gpu || all[i].process == all[j].process)
        continue;
      peers.share_gpu = fmt::format("ranks {} and {}", j, i);
    }
    if (all[i].process == own.process && all[i].device == own.device)
      peers.on_own_gpu.push_back(static_cast<Rank>(i));
  }
}

std::vector<Introduction> gather(const Bootstrap& bootstrap, const Introduction& own) {
  std::vector<Introduction> all;
  for (const std::vector<std::byte>& bytes : bootstrap.allgather(std::as_bytes(std::span(&own, 1)))) {
    all.emplace_back();
    std::memcpy(&all.back(), bytes.data(), sizeof own);
  }
  return all;
}

/// Lets kernels of `device` read and write memory of `other`, both of this process.
void enable_access(int device, int other) {
  if (device == other) return;
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, device, other), "ask whether GPUs are peers (cudaDeviceCanAccessPeer)");
  if (can == 0)
    throw Error(ExitCode::cuda, fmt::format("GPU {} cannot access the memory of GPU {}", device, other));
  const cudaError_t result = cudaDeviceEnablePeerAccess(other, 0);
  if (result == cudaErrorPeerAccessAlreadyEnabled) {
    cudaGetLastError();
    return;
  }
  check(result, fmt::format("access the memory of GPU {} (cudaDeviceEnablePeerAccess)", other));
}

void read_word(const std::byte* from, std::uint32_t expected) {
  std::uint32_t word = 0;
  check(cudaMemcpy(&word, from, sizeof word, cudaMemcpyDefault), "read another rank's memory (cudaMemcpy)");
  if (word != expected)
    throw Error(ExitCode::cuda, "the GPU reads something else than stands in another rank's memory");
}

/// Why not; nothing where it does.
std::string why_not_reached(const Introduction& own, Rank rank, const Introduction& other,
                            MappedMemory& mapped) {
  try {
    if (own.process == other.process) enable_access(own.device, other.device);
    read_word(own.process == other.process ? reinterpret_cast<const std::byte*>(other.location.address)
                                           : mapped.at(rank, other.location),
              other.word);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

Peers find_peers(const Bootstrap& bootstrap, const RankHosts& hosts, int device, MappedMemory& mapped) {
  static const std::uint64_t process = random_token();
  const Rank rank = bootstrap.rank();
  const std::vector<int> neighbors = hosts.neighbors(rank);
  DeviceHeap& heap = DeviceHeap::of(device);
  Memory memory = heap.allocate(Bytes{sizeof(std::uint32_t)});
  Introduction own{.process = process,
                   .device = device,
                   .word = static_cast<std::uint32_t>(random_token()),
                   .location = {},
                   .host = hosts.of_rank[index(rank)],
                   .gpu = id_of(device)};
  check(cudaMemcpy(memory.get(), &own.word, sizeof own.word, cudaMemcpyDefault),
        "copy a word to the GPU (cudaMemcpy)");
  // From memory that is not pinned it has only been read by then.
  check(cudaStreamSynchronize(nullptr), "finish a copy (cudaStreamSynchronize)");
  const bool exports = neighbors.size() > 1;
  std::string why_not;
  try {
    own.location = heap.locate(memory.get(), exports);
  } catch (const Error& error) {
    why_not = error.what();
  }
  const std::vector<Introduction> all = gather(bootstrap, own);
  Peers peers{std::vector<char>(all.size()), std::vector<char>(all.size()), {}, {}, {}, {}};
  find_shared_gpus(peers, rank, all);
  for (std::size_t i = 0; i < all.size(); ++i) peers.same_process[i] = all[i].process == process;
  for (const int neighbor : neighbors) {
    if (neighbor == rank || !why_not.empty()) continue;
    why_not = why_not_reached(own, neighbor, all[index(neighbor)], mapped);
    peers.reached[index(neighbor)] = 1;
  }
  // Also the barrier before which the word must stay.
  Rank of = 0;
  for (const std::vector<std::byte>& reason : bootstrap.allgather(std::as_bytes(std::span(why_not)))) {
    if (!reason.empty() && peers.why_not.empty()) {
      const std::string_view text(reinterpret_cast<const char*>(reason.data()), reason.size());
      peers.why_not = fmt::format("on rank {}: {}", of, text);
    }
    ++of;
  }
  if (!peers.why_not.empty()) std::ranges::fill(peers.reached, 0);
  return peers;
}

}  // namespace polyring::cuda
