// How long a run will still take, by what it has done.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/units.hpp"

namespace polyring {

class Remaining {
 public:
  /// `weights`: the expected time of each step, in any unit. A time that all steps share may be left out.
  explicit Remaining(const std::vector<double>& weights);

  std::size_t steps() const { return behind_.size() - 1; }

  /// When the first `done` steps took `elapsed`. Nothing before there is something to go by: a step, and a
  /// second.
  std::optional<Seconds> after(std::size_t done, Seconds elapsed) const;

 private:
  std::vector<double> behind_{0};  // the weight of the first 0, 1, 2, … steps
};

/// "12 s", "3 min", "2 h".
std::string rough_text(Seconds time);

}  // namespace polyring
