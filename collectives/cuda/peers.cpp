#include "collectives/cuda/peers.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>

#include "base/error.hpp"
#include "base/index.hpp"
#include "base/random_token.hpp"
#include "collectives/cuda/check.hpp"
#include "collectives/cuda/copies.hpp"
#include "collectives/cuda/kernels.hpp"
#include "collectives/cuda/owners.hpp"
#include "collectives/cuda/queue.hpp"

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

/// A word of each rank's, and one for each rank to write.
class Words {
 public:
  Words(int ranks, int device, const WaitRules& rules)
      : rules_(rules),
        own_(static_cast<std::uint32_t>(random_token())),
        ranks_(index(ranks)),
        memory_(DeviceHeap::of(device).allocate(Bytes{(2 + ranks_) * kBytes})),
        stream_(make_stream()) {
    write(0, own_);
    for (std::size_t i = 0; i <= ranks_; ++i) write(1 + i, 0);
  }

  std::uint32_t own() const { return own_; }
  const std::byte* begin() const { return memory_.get(); }

  /// By a kernel on this rank's GPU, since copies may take other ways.
  void exchange_with(std::byte* other, std::uint32_t expected, Rank own_rank) {
    launch_copy(at(1), other, kBytes, 1, stream_.get());
    launch_copy(other + (2 + index(own_rank)) * kBytes, at(0), kBytes, 1, stream_.get());
    finish(stream_.get(), rules_, "reach another rank's memory");
    if (read(1) != expected)
      throw Error(ExitCode::cuda, "the GPU reads something else than stands in another rank's memory");
  }

  /// What the rank has written here.
  std::uint32_t from(Rank rank) { return read(2 + index(rank)); }

 private:
  static constexpr std::size_t kBytes = sizeof(std::uint32_t);

  std::byte* at(std::size_t place) const { return memory_.get() + place * kBytes; }
  // From memory that is not pinned a copy has only been read when its call returns.
  void write(std::size_t place, std::uint32_t word) {
    check(cudaMemcpyAsync(at(place), &word, kBytes, cudaMemcpyDefault, stream_.get()),
          "copy a word to the GPU (cudaMemcpyAsync)");
    finish(stream_.get(), rules_, "finish a copy");
  }
  std::uint32_t read(std::size_t place) {
    std::uint32_t word = 0;
    check(cudaMemcpyAsync(&word, at(place), kBytes, cudaMemcpyDefault, stream_.get()),
          "copy a word from the GPU (cudaMemcpyAsync)");
    finish(stream_.get(), rules_, "finish a copy");
    return word;
  }

  const WaitRules& rules_;
  std::uint32_t own_;
  std::size_t ranks_;
  Memory memory_;
  Stream stream_;
};

/// Why not; nothing where it does.
std::string why_not_reached(const Introduction& own, Rank own_rank, Rank rank, const Introduction& other,
                            Words& words, MappedMemory& mapped) {
  try {
    if (own.process == other.process && own.device != other.device &&
        !enable_access(own.device, other.device))
      return fmt::format("GPU {} cannot access the memory of GPU {}", own.device, other.device);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it was an address of this process
    words.exchange_with(own.process == other.process ? reinterpret_cast<std::byte*>(other.location.address)
                                                     : mapped.at(rank, other.location),
                        other.word, own_rank);
    return {};
  } catch (const Error& error) {
    if (error.code() == ExitCode::timeout) throw;
    return error.what();
  }
}

/// Collective. The first rank's reason; nothing where none has one.
std::string first_reason(const Bootstrap& bootstrap, const std::string& own) {
  Rank rank = 0;
  for (const std::vector<std::byte>& reason : bootstrap.allgather(std::as_bytes(std::span(own)))) {
    if (!reason.empty()) {
      const std::string_view text(reinterpret_cast<const char*>(reason.data()), reason.size());
      return fmt::format("on rank {}: {}", rank, text);
    }
    ++rank;
  }
  return {};
}

}  // namespace

Peers find_peers(const Bootstrap& bootstrap, const RankHosts& hosts, int device, const WaitRules& rules,
                 MappedMemory& mapped) {
  static const std::uint64_t process = random_token();
  const Rank rank = bootstrap.rank();
  const std::vector<int> neighbors = hosts.neighbors(rank);
  Words words(bootstrap.size(), device, rules);
  Introduction own{.process = process,
                   .device = device,
                   .word = words.own(),
                   .location = {},
                   .host = hosts.of_rank[index(rank)],
                   .gpu = id_of(device)};
  const bool exports = neighbors.size() > 1;
  std::string why_not;
  try {
    own.location = DeviceHeap::of(device).locate(words.begin(), exports);
  } catch (const Error& error) {
    why_not = error.what();
  }
  const std::vector<Introduction> all = gather(bootstrap, own);
  Peers peers{std::vector<char>(all.size()), std::vector<char>(all.size()), {}, {}, {}, {}};
  find_shared_gpus(peers, rank, all);
  for (std::size_t i = 0; i < all.size(); ++i) peers.same_process[i] = all[i].process == process;
  for (const int neighbor : neighbors) {
    if (neighbor == rank || !why_not.empty()) continue;
    why_not = why_not_reached(own, rank, neighbor, all[index(neighbor)], words, mapped);
    peers.reached[index(neighbor)] = 1;
  }
  peers.why_not = first_reason(bootstrap, why_not);
  for (const int neighbor : neighbors) {
    if (neighbor == rank || !peers.why_not.empty() || !why_not.empty()) continue;
    if (words.from(neighbor) != all[index(neighbor)].word)
      why_not = fmt::format("what rank {} writes to this rank's memory is not there", neighbor);
  }
  // Also the barrier before which the words must stay.
  const std::string later = first_reason(bootstrap, why_not);
  if (peers.why_not.empty()) peers.why_not = later;
  if (!peers.why_not.empty()) std::ranges::fill(peers.reached, 0);
  return peers;
}

}  // namespace polyring::cuda
