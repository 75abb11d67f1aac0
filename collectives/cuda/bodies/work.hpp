// Keeps multiprocessors busy with arithmetic on registers: work of a known amount, whose time is another
// where others take part of a multiprocessor. A loop that waited for a clock would not be slowed down.
#pragma once

#include "collectives/cuda/arguments.hpp"
#include "collectives/cuda/bodies/body.hpp"

namespace polyring {

struct WorkBody {
  using Arguments = WorkArguments;
  using State = NoState;
  static constexpr int kPhases = 1;

  template <int kPhase, typename Pause>
  POLYRING_HD static void run(const Arguments& arguments, const ThreadPlace& place, State&, const Pause&) {
    auto value = static_cast<float>(place.thread);
    for (std::int64_t turn = 0; turn < arguments.turns; ++turn)
      value = value * arguments.factor + arguments.summand;
    if (place.index() == 0) *arguments.result = value;
  }
};

}  // namespace polyring
