// Rings over a graph: as many directed Hamiltonian cycles side by side as the links carry, and the single
// cheapest one. Knows vertices and links only; what they stand for is host_rings.hpp's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace polyring {

/// A whole number for each ordered pair of vertices; 0 at first.
class PairMatrix {
 public:
  explicit PairMatrix(int vertices)
      : vertices_(vertices),
        values_(static_cast<std::size_t>(vertices) * static_cast<std::size_t>(vertices)) {}

  int vertices() const { return vertices_; }
  int& at(int from, int to) { return values_[index(from, to)]; }
  int at(int from, int to) const { return values_[index(from, to)]; }

 private:
  std::size_t index(int from, int to) const {
    return static_cast<std::size_t>(from) * static_cast<std::size_t>(vertices_) +
           static_cast<std::size_t>(to);
  }
  int vertices_;
  std::vector<int> values_;
};

/// All vertices in the order of a directed cycle, vertex 0 first.
using Cycle = std::vector<int>;

/// The searches throw a usage Error for more vertices.
inline constexpr int kMostRingVertices = 16;

/// A largest set of cycles, `least` to `most` of them, that together use no arc more often than `capacity`
/// says: in the dictionary's order, and one that comes twice takes two units. Of several sets the first in
/// that order. Each size is looked for in at most `most_steps` steps: where they do not suffice a smaller set
/// comes of it. The same on every machine. Empty where there is no such set, and for fewer than two vertices.
std::vector<Cycle> pack_rings(const PairMatrix& capacity, int least, int most, std::int64_t most_steps);

/// The cycle whose arcs' costs have the least sum, of several the first in the dictionary's order. Held and
/// Karp, "A dynamic programming approach to sequencing problems", J. SIAM 10(1), 1962: 2^n·n² steps.
Cycle cheapest_ring(const PairMatrix& cost);

}  // namespace polyring
