// Test payloads: what each rank puts in, chosen so that the right result is known exactly and any lost,
// doubled or misplaced contribution shows.
#pragma once

#include <cstddef>
#include <vector>

#include "collectives/element.hpp"
#include "collectives/slice.hpp"

namespace polyring {

/// Values repeat every kPeriod elements, a prime, so that a slice at a wrong offset is almost never right by
/// chance. They are small whole numbers: sums, products and averages are exact in every kind, in whatever
/// order they are reduced, and are compared bit by bit.
class Payload {
 public:
  static constexpr Count kPeriod = 1009;

  Payload(ElementKind kind, ReduceOp op, int ranks);

  /// Writes `count` elements of this rank's input.
  void fill(Rank rank, std::byte* data, Count count) const;

  /// How many of `count` elements differ from the result of all ranks' inputs.
  Count wrong(const std::byte* data, Count count) const;

 private:
  double input(Rank rank, Count index) const;
  double result(Count index) const;

  ElementKind kind_;
  ReduceOp op_;
  int ranks_;
  std::vector<std::byte> expected_;  // kPeriod elements
};

}  // namespace polyring
