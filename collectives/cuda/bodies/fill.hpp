// Fills memory with a pattern of four bytes.
#pragma once

#include "collectives/cuda/arguments.hpp"
#include "collectives/cuda/bodies/body.hpp"

namespace polyring {

struct FillBody {
  using Arguments = FillArguments;
  using State = NoState;
  static constexpr int kPhases = 1;

  template <int kPhase, typename Pause>
  POLYRING_HD static void run(const Arguments& arguments, const ThreadPlace& place, State&, const Pause&) {
    constexpr auto kVector = static_cast<std::int64_t>(kVectorBytes);
    const std::int64_t to_vector = to_next_vector(arguments.to);
    const std::int64_t head = to_vector < arguments.bytes ? to_vector : arguments.bytes;
    const std::int64_t end = head + (arguments.bytes - head) / kVector * kVector;
    const auto turn = static_cast<std::uint32_t>(head % 4) * 8;
    const std::uint32_t turned =
        turn == 0 ? arguments.pattern : arguments.pattern >> turn | arguments.pattern << (32 - turn);
    const Elements<std::uint32_t, 4> vector{{turned, turned, turned, turned}};
    for (std::int64_t i = head + place.index() * kVector; i < end; i += place.total() * kVector) {
      store_aligned(arguments.to + i, vector);
    }
    const std::int64_t rest = head + arguments.bytes - end;
    for (std::int64_t j = place.index(); j < rest; j += place.total()) {
      const std::int64_t at = j < head ? j : end + (j - head);
      arguments.to[at] = static_cast<std::byte>(arguments.pattern >> static_cast<std::uint32_t>(at % 4) * 8);
    }
  }
};

}  // namespace polyring
