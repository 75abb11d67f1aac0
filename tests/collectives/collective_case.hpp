// Collectives with their buffers, and what must come of them, computed element by element.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "collectives/runtime/communicator.hpp"

namespace polyring::testing {

/// One collective of int64 sums, with its buffers.
class Case {
 public:
  Case(Collective collective, Count each, std::uint64_t seed, Rank rank, int ranks)
      : what_{collective, each * (collective == Collective::allreduce ? 1 : ranks), ElementKind::int64},
        rank_(rank),
        ranks_(ranks),
        seed_(seed),
        input_(index(input_count(collective, ranks, what_.count))),
        output_(index(output_count(collective, ranks, what_.count))) {
    for (std::size_t i = 0; i < input_.size(); ++i) input_[i] = value(rank, static_cast<Count>(i));
  }

  const std::byte* input() const { return reinterpret_cast<const std::byte*>(input_.data()); }
  std::byte* output() { return reinterpret_cast<std::byte*>(output_.data()); }
  Operation start(Communicator& communicator) { return communicator.start(what_, input(), output()); }

  const CollectiveOf& what() const { return what_; }

  bool is_right() const {
    for (std::size_t i = 0; i < output_.size(); ++i) {
      if (output_[i] != expected(static_cast<Count>(i))) return false;
    }
    return true;
  }
  std::string name() const {
    return fmt::format("{} of {} elements on rank {}", to_text(what_.collective), what_.count, rank_);
  }

 private:
  std::int64_t value(Rank rank, Count element) const {
    return static_cast<std::int64_t>(seed_) * 1'000'000 + rank * 10'007 + element * 31;
  }
  std::int64_t sum(Count element) const {
    std::int64_t all = 0;
    for (Rank rank = 0; rank < ranks_; ++rank) all += value(rank, element);
    return all;
  }
  std::int64_t expected(Count element) const {
    const Count block = what_.count / ranks_;
    switch (what_.collective) {
      case Collective::allreduce:
        return sum(element);
      case Collective::reduce_scatter:
        return sum(rank_ * block + element);
      case Collective::allgather:
        return value(static_cast<Rank>(element / block), element % block);
      case Collective::alltoall:
        return value(static_cast<Rank>(element / block), rank_ * block + element % block);
    }
    return 0;
  }

  CollectiveOf what_;
  Rank rank_;
  int ranks_;
  std::uint64_t seed_;
  std::vector<std::int64_t> input_;
  std::vector<std::int64_t> output_;
};

/// All collectives, of awkward sizes.
inline std::vector<Case> cases_of(const Bootstrap& bootstrap) {
  std::vector<Case> cases;
  std::uint64_t seed = 0;
  for (const Count each : {Count{1}, Count{0}, Count{37}, Count{5000}, Count{1} << 17}) {
    for (const Collective collective :
         {Collective::allreduce, Collective::reduce_scatter, Collective::allgather, Collective::alltoall})
      cases.emplace_back(collective, each, ++seed, bootstrap.rank(), bootstrap.size());
  }
  return cases;
}

/// From 0 to `number` − 1, in an order of each rank's own.
inline std::vector<std::size_t> order_of(std::size_t number, Rank rank) {
  std::vector<std::size_t> order(number);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(static_cast<unsigned>(rank));
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

}  // namespace polyring::testing
