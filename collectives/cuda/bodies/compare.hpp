// Counts the elements in which two buffers differ.
#pragma once

#include "collectives/cuda/arguments.hpp"
#include "collectives/cuda/bodies/body.hpp"
#include "collectives/cuda/flags.hpp"

namespace polyring {

template <typename T>
POLYRING_HD inline std::uint64_t differing_elements(const CompareArguments& arguments,
                                                    const ThreadPlace& place) {
  constexpr std::int64_t kSize = sizeof(T);
  constexpr std::int64_t kWidth = kVectorBytes / sizeof(T);
  using Vector = Elements<T, kWidth>;
  const std::int64_t to_vector = to_next_vector(arguments.left) / kSize;
  const bool aligned = to_next_vector(arguments.left) == to_next_vector(arguments.right);
  const std::int64_t head = aligned && to_vector < arguments.count ? to_vector : arguments.count;
  const std::int64_t end = head + (arguments.count - head) / kWidth * kWidth;
  std::uint64_t differing = 0;
  for (std::int64_t i = head + place.index() * kWidth; i < end; i += place.total() * kWidth) {
    const auto left = load_aligned<Vector>(arguments.left + i * kSize);
    const auto right = load_aligned<Vector>(arguments.right + i * kSize);
    for (int e = 0; e < kWidth; ++e) differing += left.at[e] != right.at[e] ? 1u : 0u;
  }
  const std::int64_t rest = head + arguments.count - end;
  for (std::int64_t j = place.index(); j < rest; j += place.total()) {
    const std::int64_t at = (j < head ? j : end + (j - head)) * kSize;
    const bool same = load_aligned<T>(arguments.left + at) == load_aligned<T>(arguments.right + at);
    differing += same ? 0u : 1u;
  }
  return differing;
}

struct CompareBody {
  using Arguments = CompareArguments;
  using State = NoState;
  static constexpr int kPhases = 1;

  template <int kPhase, typename Pause>
  POLYRING_HD static void run(const Arguments& arguments, const ThreadPlace& place, State&, const Pause&) {
    const std::uint64_t differing = of_size(arguments, place);
    if (differing != 0) flags::add(arguments.differing, differing);
  }

 private:
  POLYRING_HD static std::uint64_t of_size(const Arguments& arguments, const ThreadPlace& place) {
    switch (arguments.element_bytes) {
      case 1:
        return differing_elements<std::uint8_t>(arguments, place);
      case 2:
        return differing_elements<std::uint16_t>(arguments, place);
      case 4:
        return differing_elements<std::uint32_t>(arguments, place);
      default:
        return differing_elements<std::uint64_t>(arguments, place);
    }
  }
};

}  // namespace polyring
