// combine_many and copy_on_host for the instruction set that this file is compiled for; see packs.hpp for why
// all is in an anonymous namespace.
//
// The work goes block by block, so that whatever is touched twice (a partial result of more inputs than one
// pass takes) is in the first-level cache:
//
//   inputs 0 … 7 ─► pass ─► partial (in the type combined in) ─► pass ─► all outputs
//                           inputs 8 … 15 ──────────────────────┘
#pragma once

#include "collectives/runtime/kernels/packs.hpp"
#include "collectives/runtime/kernels/table.hpp"

namespace polyring {
namespace {

constexpr std::size_t kBlockBytes = 8192;   // of a block in the type that it is combined in
constexpr std::size_t kStagedBytes = 1024;  // of a block that is stored past the caches from a copy
constexpr std::size_t kFanIn = 8;           // inputs in one pass
constexpr std::size_t kUnroll = 4;          // packs that a pass combines together, at least
constexpr std::size_t kAhead = 4096;  // bytes ahead at which inputs are fetched: processors stop at pages

/// What avg does to the sum. The quotient by a power of two is the product with its reciprocal, to the bit.
enum class Division { none, reciprocal, quotient };

template <typename T>
struct Divide {
  Division how = Division::none;
  T by{};

  explicit Divide(int divisor) : by(static_cast<T>(divisor)) {
    if (divisor == 1) return;
    const bool exact = kIsFloat<T> && (divisor & (divisor - 1)) == 0;
    how = exact ? Division::reciprocal : Division::quotient;
    if (exact) by = static_cast<T>(T{1} / by);
  }

  Vector<T> operator()(Vector<T> pack) const {
    if (how == Division::none) return pack;
    return how == Division::reciprocal ? pack * by : pack / by;
  }
};

/// Where results go: `offset` bytes after each of the beginnings, past the caches if `streams`.
struct Outputs {
  std::byte* const* begins;
  std::size_t count;
  std::size_t offset;
  bool streams;
};

/// Some inputs of one block, and where their result goes: to `partial` as it was computed or, where that is
/// null, to `outputs` as it is stored; all of these begin a line if they are streamed to. `start` is the
/// partial result of the inputs before, or null. `ahead` is 0 where what lies ahead is no input.
template <typename Element>
struct Pass {
  const typename Element::Computed* start;
  const std::byte* inputs[kFanIn];
  std::size_t input_count;
  std::size_t ahead;
  typename Element::Computed* partial;
  Outputs outputs;
};

/// A result before it is rounded. Which of two NaNs an operation yields depends on the order of its operands,
/// which the compiler and the schedule choose, so there is one for all.
template <typename Op, typename T>
Vector<T> finished(Vector<T> pack, const Divide<T>& divide) {
  Vector<T> result = Op::template leave<T>(pack);
  if constexpr (Op::kDivides) result = divide(result);
  if constexpr (kIsFloat<T>)
    result = result == result ? result : Vector<T>{} + static_cast<T>(__builtin_nan(""));
  return result;
}

/// How packs are stored: to the only output, to all of them, or past the caches to all of them.
enum class Storing { to_one, to_all, streaming_to_all };

/// kPacks packs of a pass, from element i on, to one output after the other. kInputs is the number of its
/// inputs, or 0 for any.
template <typename Element, typename Op, std::size_t kPacks, std::size_t kInputs, Storing kStoring>
[[gnu::always_inline]] inline void combine_packs(const Pass<Element>& pass,
                                                 const Divide<typename Element::Computed>& divide,
                                                 std::size_t i) {
  using T = typename Element::Computed;
  using Stored = typename Element::Stored;
  using Result = typename Element::Result;
  constexpr std::size_t kWidth = kPackBytes / sizeof(T);
  const std::size_t input_count = kInputs == 0 ? pass.input_count : kInputs;
  using StoredPack = Vector<Stored, kWidth * sizeof(Stored)>;
  const auto input = [&](std::size_t k, std::size_t pack) {
    const auto stored = load<StoredPack>(pass.inputs[k] + (i + pack * kWidth) * sizeof(Stored));
    return Op::template enter<T>(Element::widen(stored));
  };
  if constexpr (kPacks >= kUnroll && kStoring != Storing::streaming_to_all) {
    for (std::size_t k = 0; k < input_count; ++k) {
      fetch(pass.inputs[k] + i * sizeof(Stored) + pass.ahead, kPacks * kWidth * sizeof(Stored));
    }
  }
  Vector<T> sum[kPacks];
  std::size_t operand = 0;
  if (kInputs == 0 && pass.start != nullptr) {
    __builtin_memcpy(sum, pass.start + i, sizeof sum);
  } else {
    for (std::size_t pack = 0; pack < kPacks; ++pack) sum[pack] = input(0, pack);
    operand = 1;
  }
  for (; operand < input_count; ++operand) {
    for (std::size_t pack = 0; pack < kPacks; ++pack) {
      sum[pack] = Op::template apply<T>(sum[pack], input(operand, pack));
    }
  }
  if (kInputs == 0 && pass.partial != nullptr) {
    __builtin_memcpy(pass.partial + i, sum, sizeof sum);
    return;
  }
  Vector<Result, kWidth * sizeof(Result)> results[kPacks];
  for (std::size_t pack = 0; pack < kPacks; ++pack) {
    results[pack] = Element::narrow(finished<Op, T>(sum[pack], divide));
  }
  const std::size_t offset = pass.outputs.offset + i * sizeof(Result);
  const std::size_t output_count = kStoring == Storing::to_one ? 1 : pass.outputs.count;
  constexpr bool kStreams = kStoring == Storing::streaming_to_all;
  constexpr std::size_t kTogether = kStreams ? kLine / sizeof results[0] : kPacks;
  for (std::size_t first = 0; first < kPacks; first += kTogether) {
    for (std::size_t k = 0; k < output_count; ++k) {
      std::byte* const output = pass.outputs.begins[k] + offset;
      for (std::size_t pack = first; pack < first + kTogether; ++pack) {
        if constexpr (kStreams) {
          stream_pack(output + pack * sizeof results[pack], results[pack]);
        } else {
          store(output + pack * sizeof results[pack], results[pack]);
        }
      }
    }
  }
}

/// The last elements of a block, fewer than a pack, in copies that are filled up.
template <typename Element, typename Op>
void combine_rest(const Pass<Element>& pass, const Divide<typename Element::Computed>& divide,
                  std::size_t begin, std::size_t count) {
  using Stored = typename Element::Stored;
  using Result = typename Element::Result;
  std::byte filled[kFanIn][kPackBytes] = {};
  std::byte result[kPackBytes];
  Pass<Element> rest = pass;
  for (std::size_t k = 0; k < pass.input_count; ++k) {
    __builtin_memcpy(filled[k], pass.inputs[k] + begin * sizeof(Stored), count * sizeof(Stored));
    rest.inputs[k] = filled[k];
  }
  if (pass.start != nullptr) rest.start += begin;
  if (pass.partial != nullptr) rest.partial += begin;
  std::byte* const results[] = {result};
  rest.outputs = {results, 1, 0, false};
  combine_packs<Element, Op, 1, 0, Storing::to_one>(rest, divide, 0);
  if (pass.partial != nullptr) return;
  const std::size_t offset = pass.outputs.offset + begin * sizeof(Result);
  for (std::size_t k = 0; k < pass.outputs.count; ++k) {
    __builtin_memcpy(pass.outputs.begins[k] + offset, result, count * sizeof(Result));
  }
}

/// As many of a pass's elements as kPacks packs at a time reach, from element i on; returns where the rest
/// begins.
template <typename Element, typename Op, std::size_t kPacks, std::size_t kInputs, Storing kStoring>
[[gnu::always_inline]] inline std::size_t combine_groups(const Pass<Element>& pass,
                                                         const Divide<typename Element::Computed>& divide,
                                                         std::size_t i, std::size_t count) {
  constexpr std::size_t kGroup = kPacks * kPackBytes / sizeof(typename Element::Computed);
  for (; i + kGroup <= count; i += kGroup) {
    combine_packs<Element, Op, kPacks, kInputs, kStoring>(pass, divide, i);
  }
  return i;
}

template <typename Element, typename Op, std::size_t kInputs>
void run_pass(const Pass<Element>& described, Divide<typename Element::Computed> divide, std::size_t count) {
  constexpr std::size_t kResultBytes =
      kPackBytes / sizeof(typename Element::Computed) * sizeof(typename Element::Result);
  constexpr std::size_t kLinePacks = kLine / kResultBytes;
  constexpr std::size_t kStreamed = kLinePacks < kUnroll ? kUnroll : kLinePacks;
  const Pass<Element> pass = described;  // a copy: the compiler knows that no store changes it
  std::size_t i = 0;
  if (pass.outputs.streams) {
    i = combine_groups<Element, Op, kStreamed, kInputs, Storing::streaming_to_all>(pass, divide, i, count);
  } else if (pass.outputs.count == 1) {
    i = combine_groups<Element, Op, kUnroll, kInputs, Storing::to_one>(pass, divide, i, count);
  } else {
    i = combine_groups<Element, Op, kUnroll, kInputs, Storing::to_all>(pass, divide, i, count);
  }
  i = combine_groups<Element, Op, 1, kInputs, Storing::to_all>(pass, divide, i, count);
  if (i < count) combine_rest<Element, Op>(described, divide, i, count - i);
}

/// The elements of a block from `begin` on, of all inputs, into `outputs`.
template <typename Element, typename Op>
void combine_block(const KernelArguments& arguments, const Divide<typename Element::Computed>& divide,
                   std::size_t begin, std::size_t count, const Outputs& outputs) {
  alignas(kLine) typename Element::Computed partial[kBlockBytes / sizeof(typename Element::Computed)];
  const std::size_t left = (arguments.count - begin - count) * sizeof(typename Element::Stored);
  const std::size_t ahead = left >= kAhead ? kAhead : 0;
  for (std::size_t first = 0; first < arguments.input_count; first += kFanIn) {
    const std::size_t input_count = lesser(kFanIn, arguments.input_count - first);
    const bool last = first + input_count == arguments.input_count;
    typename Element::Computed* const start = first == 0 ? nullptr : partial;
    Pass<Element> pass{start, {}, input_count, ahead, last ? nullptr : partial, outputs};
    for (std::size_t k = 0; k < input_count; ++k) {
      pass.inputs[k] = arguments.inputs[first + k] + begin * sizeof(typename Element::Stored);
    }
    switch (arguments.input_count) {
      case 2:
        return run_pass<Element, Op, 2>(pass, divide, count);
      case 3:
        return run_pass<Element, Op, 3>(pass, divide, count);
      case 4:
        return run_pass<Element, Op, 4>(pass, divide, count);
      default:
        run_pass<Element, Op, 0>(pass, divide, count);
    }
  }
}

/// Copies past the caches whatever fills whole lines of the destination.
void stream(std::byte* to, const std::byte* from, std::size_t bytes) {
  const std::size_t head = lesser(to_next_line(to), bytes);
  __builtin_memcpy(to, from, head);
  std::size_t done = head;
  for (; done + kLine <= bytes; done += kLine) {
    for (std::size_t i = done; i < done + kLine; i += kPackBytes) {
      stream_pack(to + i, load<Vector<std::uint64_t>>(from + i));
    }
  }
  __builtin_memcpy(to + done, from + done, bytes - done);
}

/// Whether all outputs begin equally far from a line, by whole elements.
template <typename Result>
bool share_lines(const KernelArguments& arguments) {
  const std::size_t head = to_next_line(arguments.outputs[0]);
  for (std::size_t k = 1; k < arguments.output_count; ++k) {
    if (to_next_line(arguments.outputs[k]) != head) return false;
  }
  return head % sizeof(Result) == 0;
}

/// Into all outputs as it is computed, past the caches once the first block has reached a line. Outputs that
/// reach theirs at different elements, or within one, are streamed to from a copy of each block.
template <typename Element, typename Op>
void combine_elements(const KernelArguments& arguments) {
  using Result = typename Element::Result;
  using Computed = typename Element::Computed;
  const bool streaming = arguments.stores == Stores::streaming;
  const bool staging = streaming && !share_lines<Result>(arguments);
  const std::size_t block = staging ? kStagedBytes / sizeof(Result) : kBlockBytes / sizeof(Computed);
  const Reduction& reduction = arguments.reduction;
  const Divide<Computed> divide(reduction.op == ReduceOp::avg ? reduction.divisor : 1);
  alignas(kLine) std::byte staged[kStagedBytes];
  std::byte* const stage[] = {staged};
  std::size_t size = block - (kLine - to_next_line(arguments.outputs[0])) % kLine / sizeof(Result);
  for (std::size_t begin = 0; begin < arguments.count; begin += size, size = block) {
    size = lesser(size, arguments.count - begin);
    const std::size_t offset = begin * sizeof(Result);
    if (!staging) {
      const bool streams = streaming && to_next_line(arguments.outputs[0] + offset) == 0;
      const Outputs outputs{arguments.outputs, arguments.output_count, offset, streams};
      combine_block<Element, Op>(arguments, divide, begin, size, outputs);
      continue;
    }
    combine_block<Element, Op>(arguments, divide, begin, size, {stage, 1, 0, false});
    for (std::size_t k = 0; k < arguments.output_count; ++k) {
      stream(arguments.outputs[k] + offset, staged, size * sizeof(Result));
    }
  }
  if (streaming) finish_streaming();
}

/// Minima and maxima may go by other elements.
template <typename Element, typename ForLeast = Element, typename ForGreatest = Element>
void combine_with_op(const KernelArguments& arguments) {
  switch (arguments.reduction.op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
      return combine_elements<Element, Add>(arguments);
    case ReduceOp::prod:
      return combine_elements<Element, Multiply>(arguments);
    case ReduceOp::min:
      return combine_elements<ForLeast, Least>(arguments);
    case ReduceOp::max:
      return combine_elements<ForGreatest, Greatest>(arguments);
  }
}

/// Operands of float16 or bfloat16.
template <typename Half>
void combine_halves(const KernelArguments& arguments) {
  if (arguments.reduction.result == ElementKind::float32) {
    combine_with_op<Between<Half, Plain<float>>>(arguments);
  } else {
    combine_with_op<Half, HalfPlace<Half, true>, HalfPlace<Half, false>>(arguments);
  }
}

inline void combine_floats(const KernelArguments& arguments) {
  switch (arguments.reduction.result) {
    case ElementKind::float16:
      return combine_with_op<Between<Plain<float>, Float16Element>>(arguments);
    case ElementKind::bfloat16:
      return combine_with_op<Between<Plain<float>, Bfloat16Element>>(arguments);
    default:
      return combine_with_op<Plain<float>>(arguments);
  }
}

inline void reduce(const KernelArguments& arguments) {
  switch (arguments.reduction.kind) {
    case ElementKind::float32:
      return combine_floats(arguments);
    case ElementKind::float64:
      return combine_with_op<Plain<double>>(arguments);
    case ElementKind::float16:
      return combine_halves<Float16Element>(arguments);
    case ElementKind::bfloat16:
      return combine_halves<Bfloat16Element>(arguments);
    case ElementKind::int32:
      return combine_with_op<Plain<std::int32_t>>(arguments);
    case ElementKind::int64:
      return combine_with_op<Plain<std::int64_t>>(arguments);
  }
}

inline void copy(std::byte* to, const std::byte* from, std::size_t bytes, Stores stores) {
  if (stores == Stores::cached) {
    __builtin_memcpy(to, from, bytes);
    return;
  }
  stream(to, from, bytes);
  finish_streaming();
}

}  // namespace
}  // namespace polyring
