// A set of elements, as disjoint slices.
#pragma once

#include <map>
#include <vector>

#include "collectives/schedule/slice.hpp"

namespace polyring {

class Intervals {
 public:
  void add(Slice slice);
  /// The parts of `slice` that are not in the set.
  std::vector<Slice> gaps(Slice slice) const;

 private:
  std::map<Count, Count> ends_;  // begin → end; disjoint and not touching
};

}  // namespace polyring
