// Reductions: each thread combines some elements of all operands, in their order, and stores the result to
// all results.
//
// Elements lie in groups that are 16 bytes wide, or twice as wide in the larger of two kinds. Threads take
// every total()-th group. The elements before the first group and behind the last are taken one by one, and
// so are all elements where the buffers are not equally aligned.
#pragma once

#include "collectives/cuda/arguments.hpp"
#include "collectives/cuda/bodies/body.hpp"
#include "collectives/cuda/elements.hpp"

namespace polyring {

// Vectors that a thread loads before it combines any: of a known number of operands, and of any number.
inline constexpr int kLoadsOfFew = 4;
inline constexpr int kLoadsOfMany = 8;

/// Elements of a group.
template <typename From, typename To>
inline constexpr int kGroup = static_cast<int>(kVectorBytes /
                                               (sizeof(typename From::Stored) < sizeof(typename To::Stored)
                                                    ? sizeof(typename From::Stored)
                                                    : sizeof(typename To::Stored)));

template <typename From, typename To, typename Operation>
struct Reducing {
  using Computed = typename From::Computed;
  template <int kWidth>
  using Loaded = Elements<typename From::Stored, kWidth>;
  using Divisor = operation::Divisor<Computed>;
  static constexpr std::int64_t kFromSize = sizeof(typename From::Stored);
  static constexpr std::int64_t kToSize = sizeof(typename To::Stored);
  static constexpr int kWide = kGroup<From, To>;
  static constexpr int kVectors = static_cast<int>(kWide * kFromSize / std::int64_t{kVectorBytes});

  POLYRING_HD static void run(const ReduceArguments& arguments, const ThreadPlace& place) {
    const Divisor divisor(arguments.divisor);
    const std::int64_t groups = (arguments.count - arguments.head) / kWide;
    std::int64_t g = place.index();
    if (arguments.operand_count == 2) g = run_groups<2>(arguments, divisor, groups, place);
    if (arguments.operand_count == 3) g = run_groups<3>(arguments, divisor, groups, place);
    if (arguments.operand_count == 4) g = run_groups<4>(arguments, divisor, groups, place);
    for (; g < groups; g += place.total()) {
      combine_any<kWide>(arguments, divisor, arguments.head + g * kWide);
    }
    const std::int64_t end = arguments.head + groups * kWide;
    const std::int64_t rest = arguments.count - groups * kWide;
    for (std::int64_t j = place.index(); j < rest; j += place.total()) {
      combine_any<1>(arguments, divisor, j < arguments.head ? j : end + (j - arguments.head));
    }
  }

 private:
  /// So many operands, several groups at a time, from the thread's first on; returns the first that is left.
  template <int kOperands>
  POLYRING_HD static std::int64_t run_groups(const ReduceArguments& arguments, const Divisor& divisor,
                                             std::int64_t groups, const ThreadPlace& place) {
    constexpr int kUnroll = (kLoadsOfFew + kOperands * kVectors - 1) / (kOperands * kVectors);
    std::int64_t g = place.index();
    for (; g + (kUnroll - 1) * place.total() < groups; g += kUnroll * place.total()) {
      combine<kOperands, kUnroll>(arguments, divisor, arguments.head + g * kWide, place.total() * kWide);
    }
    return g;
  }

  /// So many operands of kUnroll groups, which are `stride` elements apart.
  template <int kOperands, int kUnroll>
  POLYRING_HD static void combine(const ReduceArguments& arguments, const Divisor& divisor,
                                  std::int64_t first, std::int64_t stride) {
    Loaded<kWide> loaded[kOperands][kUnroll];
    POLYRING_UNROLL
    for (int k = 0; k < kOperands; ++k) {
      POLYRING_UNROLL
      for (int u = 0; u < kUnroll; ++u) loaded[k][u] = operand<kWide>(arguments, k, first + u * stride);
    }
    Elements<Computed, kWide> values[kUnroll];
    POLYRING_UNROLL
    for (int u = 0; u < kUnroll; ++u) {
      enter(values[u], loaded[0][u]);
      POLYRING_UNROLL
      for (int k = 1; k < kOperands; ++k) apply(values[u], loaded[k][u]);
    }
    POLYRING_UNROLL
    for (int u = 0; u < kUnroll; ++u) store(arguments, divisor, values[u], first + u * stride);
  }

  /// Any number of operands.
  template <int kWidth>
  POLYRING_HD static void combine_any(const ReduceArguments& arguments, const Divisor& divisor,
                                      std::int64_t first) {
    constexpr int kLoads = kWidth == kWide ? kLoadsOfMany / kVectors : kLoadsOfMany;
    Elements<Computed, kWidth> values;
    enter(values, operand<kWidth>(arguments, 0, first));
    for (int begin = 1; begin < arguments.operand_count; begin += kLoads) {
      const int left = arguments.operand_count - begin;
      Loaded<kWidth> loaded[kLoads] = {};
      POLYRING_UNROLL
      for (int k = 0; k < kLoads; ++k) {
        if (k < left) loaded[k] = operand<kWidth>(arguments, begin + k, first);
      }
      POLYRING_UNROLL
      for (int k = 0; k < kLoads; ++k) {
        if (k < left) apply(values, loaded[k]);
      }
    }
    store(arguments, divisor, values, first);
  }

  template <int kWidth>
  POLYRING_HD static Loaded<kWidth> operand(const ReduceArguments& arguments, int k, std::int64_t first) {
    return load_aligned<Loaded<kWidth>>(arguments.operands[k] + first * kFromSize);
  }

  template <int kWidth>
  POLYRING_HD static void enter(Elements<Computed, kWidth>& values, const Loaded<kWidth>& loaded) {
    POLYRING_UNROLL
    for (int e = 0; e < kWidth; ++e) {
      values.at[e] = Operation::template enter<Computed>(From::widen(loaded.at[e]));
    }
  }

  template <int kWidth>
  POLYRING_HD static void apply(Elements<Computed, kWidth>& values, const Loaded<kWidth>& loaded) {
    POLYRING_UNROLL
    for (int e = 0; e < kWidth; ++e) {
      const Computed entered = Operation::template enter<Computed>(From::widen(loaded.at[e]));
      values.at[e] = Operation::template apply<Computed>(values.at[e], entered);
    }
  }

  template <int kWidth>
  POLYRING_HD static void store(const ReduceArguments& arguments, const Divisor& divisor,
                                const Elements<Computed, kWidth>& values, std::int64_t first) {
    Elements<typename To::Stored, kWidth> result;
    POLYRING_UNROLL
    for (int e = 0; e < kWidth; ++e) {
      result.at[e] = To::narrow(operation::whole_result<Operation, Computed>(values.at[e], divisor));
    }
    for (int r = 0; r < arguments.result_count; ++r) {
      store_aligned(arguments.results[r] + first * kToSize, result);
    }
  }
};

}  // namespace polyring
