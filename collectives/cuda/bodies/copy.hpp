// Copies of bytes, to one place or to several, in the widest accesses that the addresses allow.
#pragma once

#include "collectives/cuda/arguments.hpp"
#include "collectives/cuda/bodies/body.hpp"

namespace polyring {

inline constexpr int kCopyUnroll = 4;  // loads in flight in each thread

/// Some bytes, and where they go.
struct CopyToAll {
  const std::byte* from;
  std::byte* const* to;
  int to_count;
  std::int64_t bytes;
};

/// As units of type T from `head` bytes on, and the head and the rest byte by byte.
template <typename T>
POLYRING_HD inline void copy_units(const CopyToAll& copy, std::int64_t head, const ThreadPlace& place) {
  constexpr std::int64_t kUnit = sizeof(T);
  const std::int64_t step = place.total() * kUnit;
  const std::int64_t end = head + (copy.bytes - head) / kUnit * kUnit;
  std::int64_t i = head + place.index() * kUnit;
  for (; i + (kCopyUnroll - 1) * step < end; i += kCopyUnroll * step) {
    T units[kCopyUnroll];
    POLYRING_UNROLL
    for (int u = 0; u < kCopyUnroll; ++u) units[u] = load_aligned<T>(copy.from + i + u * step);
    for (int k = 0; k < copy.to_count; ++k) {
      POLYRING_UNROLL
      for (int u = 0; u < kCopyUnroll; ++u) store_aligned(copy.to[k] + i + u * step, units[u]);
    }
  }
  for (; i < end; i += step) {
    const T unit = load_aligned<T>(copy.from + i);
    for (int k = 0; k < copy.to_count; ++k) store_aligned(copy.to[k] + i, unit);
  }
  const std::int64_t rest = head + copy.bytes - end;  // fewer than two units
  for (std::int64_t j = place.index(); j < rest; j += place.total()) {
    const std::int64_t at = j < head ? j : end + (j - head);
    for (int k = 0; k < copy.to_count; ++k) copy.to[k][at] = copy.from[at];
  }
}

/// The addresses are equal in these low bits.
POLYRING_HD inline std::uintptr_t differing_low_bits(const CopyToAll& copy) {
  std::uintptr_t differing = 0;
  const auto from = reinterpret_cast<std::uintptr_t>(copy.from);
  for (int k = 0; k < copy.to_count; ++k) differing |= reinterpret_cast<std::uintptr_t>(copy.to[k]) ^ from;
  return differing % kVectorBytes;
}

POLYRING_HD inline void copy_to_all(const CopyToAll& copy, const ThreadPlace& place) {
  const std::uintptr_t differing = differing_low_bits(copy);
  const std::int64_t to_vector = to_next_vector(copy.from);
  const std::int64_t head = to_vector < copy.bytes ? to_vector : copy.bytes;
  if (differing == 0) return copy_units<Elements<std::uint32_t, 4>>(copy, head, place);
  if (differing % 4 == 0) return copy_units<std::uint32_t>(copy, head, place);
  copy_units<std::byte>(copy, 0, place);
}

POLYRING_HD inline void copy_bytes(std::byte* to, const std::byte* from, std::int64_t bytes,
                                   const ThreadPlace& place) {
  copy_to_all({from, &to, 1, bytes}, place);
}

/// The part of an exchange that copies its only operand to all results.
struct CopyingOperand {
  POLYRING_HD static void run(const ReduceArguments& arguments, const ThreadPlace& place) {
    copy_to_all({arguments.operands[0], arguments.results, arguments.result_count, arguments.count}, place);
  }
};

}  // namespace polyring
