// StreamWords: the words in GPU memory by which the kernels of a host's ranks wait for each other, and those
// in the host's memory by which they are ended.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "collectives/cuda/arguments.hpp"
#include "collectives/cuda/rank_gpu.hpp"

namespace polyring::cuda {

/// What a rank whose kernels were ended has waited for in vain.
struct Missed {
  Rank rank = 0;
  bool done = false;  // it was ready, and has not come to its end
};

class StreamWords {
 public:
  /// Collective. Keeps the reference. The ranks of a host that do not reach each other share no words.
  explicit StreamWords(RankGpu& gpu);

  /// Of a rank of this host.
  std::uint8_t place_of(Rank rank) const { return places_[index_of(rank)]; }
  /// Fills in all words of this rank's, and its place.
  void fill(ExchangeArguments& arguments) const;
  void fill(MessageArguments& arguments) const;
  /// What this rank writes in a peer's memory.
  FlagPair* exchange_words(Rank peer) const { return bases_[index_of(peer)] + own_place_; }
  FlagPair* message_words(Rank peer) const { return bases_[index_of(peer)] + count_ + own_place_; }

  /// Ends all waiting of this rank's kernels, now and later.
  void abort();
  std::vector<Missed> missed() const;

  // What the collectives on this rank's GPU share beside the words.
  std::uint64_t next_binding() { return bindings_++; }
  void set_failure(const Error& error) { failure_ = error; }
  const std::optional<Error>& failure() const { return failure_; }

 private:
  static std::size_t index_of(Rank rank) { return static_cast<std::size_t>(rank); }
  std::uint32_t* abort_word() const { return reinterpret_cast<std::uint32_t*>(host_.get()); }
  std::uint32_t* status_words() const { return abort_word() + kStatusOffset; }

  static constexpr std::size_t kStatusOffset = 32;  // on another cache line

  std::vector<Rank> ranks_;           // of the host, by place
  std::vector<std::uint8_t> places_;  // by rank
  std::size_t count_ = 0;             // of places
  std::uint8_t own_place_ = 0;
  Memory memory_;  // on the GPU: pairs of exchanges and of messages, epochs, counters
  Memory host_;
  std::vector<FlagPair*> bases_;  // by rank: its memory_
  std::uint64_t bindings_ = 0;
  std::optional<Error> failure_;  // the first; then all that follow fail
};

}  // namespace polyring::cuda
