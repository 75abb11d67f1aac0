// Launches of the kernels on a CUDA stream. Nothing here waits. All throw Error(ExitCode::cuda) where CUDA
// refuses a launch; the sentence names the kernel.
//
// `max_blocks` caps the grid: a launch takes fewer blocks where there is less to do.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "collectives/cuda/arguments.hpp"
#include "collectives/schedule/element.hpp"
#include "collectives/schedule/slice.hpp"

namespace polyring {

/// As combine_many() of the host, to the bit: one to kMostOperands operands, up to kMostResults results, at
/// any addresses that are multiples of their elements' size. A result of the operands' kind may be one of
/// them; else the buffers are disjoint. The conversion of one operand is a reduction too.
void launch_reduce(const Reduction& reduction, std::span<std::byte* const> results,
                   std::span<const std::byte* const> operands, Count count, int max_blocks,
                   cudaStream_t stream);

/// `arguments.reduce` is made by reduce_arguments() in make_arguments.hpp. All blocks must be resident at
/// once, beside all else that waits for other ranks on this GPU: see exchange_blocks().
void launch_exchange(const Reduction& reduction, const ExchangeArguments& arguments, int max_blocks,
                     cudaStream_t stream);
/// An exchange that copies its only operand to all results: `arguments.reduce` by copy_arguments().
void launch_exchange_copy(const ExchangeArguments& arguments, int max_blocks, cudaStream_t stream);

/// All blocks must be resident at once, as those of an exchange.
void launch_messages(const MessageArguments& arguments, int max_blocks, cudaStream_t stream);

void launch_copy(std::byte* to, const std::byte* from, std::size_t bytes, int max_blocks,
                 cudaStream_t stream);
/// Byte i becomes byte i mod 4 of the pattern, the lowest first.
void launch_fill(std::byte* to, std::size_t bytes, std::uint32_t pattern, int max_blocks,
                 cudaStream_t stream);
/// Adds to `differing`, in device memory, the number of elements whose bits differ. Elements of 1, 2, 4 or 8
/// bytes.
void launch_compare(const std::byte* left, const std::byte* right, Count count, int element_bytes,
                    std::uint64_t* differing, int max_blocks, cudaStream_t stream);

/// Each thread of the grid multiplies and adds so many times; `result`, in device memory, is of no use.
void launch_work(float* result, std::int64_t turns, int blocks, cudaStream_t stream);

/// How many blocks of a kernel the current device holds at once.
int blocks_resident(const void* kernel, int threads);
/// The same of the kernel that an exchange with this reduction uses, and of the one that copies.
int exchange_blocks(const Reduction& reduction);
int exchange_copy_blocks();
int message_blocks();

}  // namespace polyring
