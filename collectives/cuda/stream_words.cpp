#include "collectives/cuda/stream_words.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <span>

#include "base/index.hpp"
#include "collectives/cuda/check.hpp"
#include "collectives/cuda/queue.hpp"

namespace polyring::cuda {
namespace {

/// Bytes for so many places, one behind the other: two pairs and three epochs for each, and the counters.
std::size_t bytes_for(std::size_t places) {
  return places * (2 * sizeof(FlagPair) + 3 * sizeof(std::uint32_t)) + sizeof(StepCounters);
}

}  // namespace

StreamWords::StreamWords(RankGpu& gpu) : places_(index(gpu.hosts().ranks())) {
  const std::vector<int> neighbors = gpu.hosts().neighbors(gpu.rank());
  for (const Rank rank : neighbors) {
    if (rank != gpu.rank() && !gpu.peers().reaches(rank)) continue;
    places_[index(rank)] = static_cast<std::uint8_t>(ranks_.size());
    ranks_.push_back(rank);
  }
  count_ = ranks_.size();
  own_place_ = place_of(gpu.rank());
  const std::size_t bytes = bytes_for(count_);
  memory_ = gpu.allocate(Bytes{bytes});
  host_ = pinned_memory(Bytes{(kStatusOffset + kMostOperands) * sizeof(std::uint32_t)});
  std::memset(host_.get(), 0, (kStatusOffset + kMostOperands) * sizeof(std::uint32_t));
  const std::vector<std::byte> zeros(bytes);
  check(cudaMemcpy(memory_.get(), zeros.data(), bytes, cudaMemcpyHostToDevice),
        "set words to zero (cudaMemcpy)");
  finish(nullptr, gpu.rules(), "finish a copy");

  bool exports = false;
  for (const Rank rank : ranks_) exports = exports || !gpu.peers().in_this_process(rank);
  const Rank for_whom =
      exports ? *std::ranges::find_if(ranks_, [&](Rank rank) { return !gpu.peers().in_this_process(rank); })
              : gpu.rank();
  const GpuLocation own = gpu.locate(for_whom, std::span(memory_.get(), bytes));
  const auto all = gpu.bootstrap().allgather(std::as_bytes(std::span(&own, 1)));
  bases_.resize(all.size());
  for (const Rank rank : ranks_) {
    GpuLocation location;
    std::memcpy(&location, all[index(rank)].data(), sizeof location);
    bases_[index(rank)] =
        reinterpret_cast<FlagPair*>(rank == gpu.rank() ? memory_.get() : gpu.at(rank, location));
  }
}

void StreamWords::fill(ExchangeArguments& arguments) const {
  auto* const pairs = reinterpret_cast<FlagPair*>(memory_.get());
  auto* const epochs = reinterpret_cast<std::uint32_t*>(pairs + 2 * count_);
  arguments.own = pairs;
  arguments.epochs = epochs;
  arguments.counters = reinterpret_cast<StepCounters*>(epochs + 3 * count_);
  arguments.watch.abort = abort_word();
  arguments.watch.status = status_words();
  arguments.own_place = own_place_;
}

void StreamWords::fill(MessageArguments& arguments) const {
  auto* const pairs = reinterpret_cast<FlagPair*>(memory_.get());
  auto* const epochs = reinterpret_cast<std::uint32_t*>(pairs + 2 * count_);
  arguments.own = pairs + count_;
  arguments.sent = epochs + count_;
  arguments.received = epochs + 2 * count_;
  arguments.counters = reinterpret_cast<StepCounters*>(epochs + 3 * count_);
  arguments.watch.abort = abort_word();
  arguments.watch.status = status_words();
}

void StreamWords::abort() { std::atomic_ref(*abort_word()).store(1, std::memory_order_release); }

std::vector<Missed> StreamWords::missed() const {
  std::vector<Missed> missed;
  for (std::size_t place = 0; place < count_; ++place) {
    const std::uint32_t status = std::atomic_ref(status_words()[place]).load(std::memory_order_acquire);
    if (status != 0) missed.push_back({ranks_[place], status == kMissedDone});
  }
  return missed;
}

}  // namespace polyring::cuda
