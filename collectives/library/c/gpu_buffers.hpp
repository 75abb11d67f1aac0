// The buffers of operations on a GPU's memory.
#pragma once

#include <span>
#include <string_view>

#include "collectives/cuda/gpu.hpp"
#include "collectives/runtime/communicator.hpp"

namespace polyring::library {

/// Whether other ranks reach these bytes of memory of this GPU: a transport has allocated them. Throws a
/// usage Error that names `what` where they are in the host's memory, in another GPU's, or longer than what
/// was allocated there.
bool is_reached(int gpu, std::span<const std::byte> bytes, std::string_view what);

/// What an operation runs on in place of buffers that other ranks do not reach: copies.
class GpuBuffers {
 public:
  /// Of buffers in the memory of the communicator's GPU. Copies the input where it is not reached. Throws
  /// what the communicator's allocate() throws.
  GpuBuffers(const Communicator& communicator, int gpu, std::span<const std::byte> input,
             std::span<std::byte> output);

  const std::byte* input() const { return input_; }
  std::byte* output() const { return output_; }
  /// After the operation: copies the result to where it belongs.
  void finish() const;

 private:
  Transport& transport_;
  std::span<std::byte> result_;  // where it belongs
  Memory copies_[2];
  const std::byte* input_;
  std::byte* output_;
};

}  // namespace polyring::library
