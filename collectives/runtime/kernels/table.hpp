// The kernels of one instruction set, as kernels.cpp finds them. Plain pointers only: an inline function of
// the standard library that were compiled here for AVX-512 could be the copy that the linker keeps for all.
#pragma once

#include <cstddef>

#include "collectives/runtime/kernels.hpp"

namespace polyring {

/// The arguments of combine_many.
struct KernelArguments {
  Reduction reduction;
  std::byte* const* outputs;
  std::size_t output_count;
  const std::byte* const* inputs;
  std::size_t input_count;
  std::size_t count;
  Stores stores;
};

struct KernelTable {
  void (*combine)(const KernelArguments&);
  void (*copy)(std::byte* to, const std::byte* from, std::size_t bytes, Stores stores);
};

extern const KernelTable kPortableKernels;
extern const KernelTable kAvx2Kernels;
extern const KernelTable kAvx512Kernels;

}  // namespace polyring
