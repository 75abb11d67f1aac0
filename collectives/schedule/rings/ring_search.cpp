#include "collectives/schedule/rings/ring_search.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"

namespace polyring {
namespace {

using Vertices = std::uint32_t;  // a set, by bit

Vertices only(int vertex) { return Vertices{1} << vertex; }

/// Looks for one number of rings, depth first and in the dictionary's order, so that no set is met twice.
class Packer {
 public:
  Packer(PairMatrix capacity, int wanted, std::int64_t most_steps)
      : n_(capacity.vertices()),
        wanted_(wanted),
        steps_left_(most_steps),
        left_(std::move(capacity)),
        out_(index(n_)),
        in_(index(n_)) {
    for (int from = 0; from < n_; ++from) {
      for (int to = 0; to < n_; ++to) note(from, to);
    }
  }

  bool run() { return begin(false); }
  const std::vector<Cycle>& rings() const { return rings_; }

 private:
  /// `tight`: the next ring may not come before the last in the dictionary.
  bool begin(bool tight) {
    const Cycle before = std::exchange(way_, {0});
    const Vertices missing = std::exchange(missing_, (only(n_ - 1) << 1) - 2);
    const bool found = extend(tight);
    way_ = before;
    missing_ = missing;
    return found;
  }

  /// `tight`: so far the way is the last ring's.
  bool extend(bool tight) {
    if (--steps_left_ < 0) return false;
    if (missing_ == 0) return close();
    if (!reachable()) return false;
    const int at = way_.back();
    const int least = tight ? rings_.back()[way_.size()] : 1;
    for (int next = least; next < n_; ++next) {
      if (at == 0 && !enough_begin_at(next)) return false;
      if ((missing_ & out_[index(at)] & only(next)) == 0) continue;
      take(at, next, 1);
      way_.push_back(next);
      missing_ ^= only(next);
      const bool found = extend(tight && next == least);
      missing_ ^= only(next);
      way_.pop_back();
      take(at, next, -1);
      if (found || steps_left_ < 0) return found;
    }
    return false;
  }

  bool close() {
    const int last = way_.back();
    if (left_.at(last, 0) == 0) return false;
    take(last, 0, 1);
    rings_.push_back(way_);
    const bool found = static_cast<int>(rings_.size()) == wanted_ || begin(true);
    take(last, 0, -1);
    if (!found) rings_.pop_back();
    return found;
  }

  /// Whether each vertex that the way misses can still be come to and left.
  bool reachable() const {
    const Vertices sources = missing_ | only(way_.back());
    const Vertices targets = missing_ | only(0);
    for (int vertex = 1; vertex < n_; ++vertex) {
      if ((missing_ & only(vertex)) == 0) continue;
      if ((in_[index(vertex)] & sources & ~only(vertex)) == 0) return false;
      if ((out_[index(vertex)] & targets & ~only(vertex)) == 0) return false;
    }
    return true;
  }

  /// Whether vertex 0 has arcs enough for all rings that are missing, as none may begin before `next`.
  bool enough_begin_at(int next) const {
    int arcs = 0;
    for (int to = next; to < n_; ++to) arcs += left_.at(0, to);
    return arcs >= wanted_ - static_cast<int>(rings_.size());
  }

  void take(int from, int to, int units) {
    left_.at(from, to) -= units;
    note(from, to);
  }

  void note(int from, int to) {
    const bool some = left_.at(from, to) > 0;
    out_[index(from)] = some ? out_[index(from)] | only(to) : out_[index(from)] & ~only(to);
    in_[index(to)] = some ? in_[index(to)] | only(from) : in_[index(to)] & ~only(from);
  }

  int n_;
  int wanted_;
  std::int64_t steps_left_;
  PairMatrix left_;
  std::vector<Vertices> out_;  // of each vertex, where arcs with capacity left lead
  std::vector<Vertices> in_;
  std::vector<Cycle> rings_;
  Cycle way_;             // of the ring that is being made
  Vertices missing_ = 0;  // on it
};

/// Searches among more would take hours and all memory.
void check_vertices(int vertices) {
  if (vertices < 1 || vertices > kMostRingVertices) {
    usage_error("rings over {} ranks are not searched for; ask for those over 1 to {}", vertices,
                kMostRingVertices);
  }
}

/// Every ring leaves and enters every vertex once.
int most_by_degree(const PairMatrix& capacity) {
  int most = std::numeric_limits<int>::max();
  for (int vertex = 0; vertex < capacity.vertices(); ++vertex) {
    int out = 0;
    int in = 0;
    for (int other = 0; other < capacity.vertices(); ++other) {
      if (other == vertex) continue;
      out += capacity.at(vertex, other);
      in += capacity.at(other, vertex);
    }
    most = std::min({most, out, in});
  }
  return most;
}

}  // namespace

std::vector<Cycle> pack_rings(const PairMatrix& capacity, int least, int most, std::int64_t most_steps) {
  if (capacity.vertices() < 2) return {};
  check_vertices(capacity.vertices());
  if (least < 1) usage_error("{} rings are no rings; ask for 1 or more", least);
  for (int wanted = std::min(most, most_by_degree(capacity)); wanted >= least; --wanted) {
    Packer packer(capacity, wanted, most_steps);
    if (packer.run()) return packer.rings();
  }
  return {};
}

Cycle cheapest_ring(const PairMatrix& cost) {
  const int n = cost.vertices();
  check_vertices(n);
  // rest[missing · n + at]: the least cost of the way from `at` over all that is missing to vertex 0. Bit i
  // is vertex i + 1.
  const std::size_t sets = std::size_t{1} << (n - 1);
  std::vector<int> rest(sets * index(n), std::numeric_limits<int>::max());
  const auto way_by = [&](std::size_t missing, int at, int next) {
    return cost.at(at, next) + rest[(missing ^ (std::size_t{1} << (next - 1))) * index(n) + index(next)];
  };
  const auto misses = [](std::size_t missing, int vertex) { return (missing >> (vertex - 1) & 1) != 0; };
  for (int at = 0; at < n; ++at) rest[index(at)] = n == 1 ? 0 : cost.at(at, 0);
  for (std::size_t missing = 1; missing < sets; ++missing) {
    for (int at = 0; at < n; ++at) {
      if (at > 0 && misses(missing, at)) continue;
      int& least = rest[missing * index(n) + index(at)];
      for (int next = 1; next < n; ++next) {
        if (misses(missing, next)) least = std::min(least, way_by(missing, at, next));
      }
    }
  }
  Cycle ring{0};
  for (std::size_t missing = sets - 1; missing != 0;) {
    const int at = ring.back();
    int next = 1;
    while (!misses(missing, next) || way_by(missing, at, next) != rest[missing * index(n) + index(at)])
      ++next;
    ring.push_back(next);
    missing ^= std::size_t{1} << (next - 1);
  }
  return ring;
}

}  // namespace polyring
