// Load: a kernel of no use that keeps a whole GPU busy for a short time, to be launched again and again.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <string>

#include "base/units.hpp"
#include "collectives/cuda/rank_gpu.hpp"

namespace polyring::cuda {

class Load {
 public:
  virtual ~Load() = default;
  virtual std::string way() const = 0;
  virtual void launch(cudaStream_t stream) = 0;
};

/// One that takes about as long as `wanted`: a matrix product of cuBLAS where there is one, else a loop of
/// arithmetic. Tries out on the stream what takes how long.
std::unique_ptr<Load> make_load(RankGpu& gpu, cudaStream_t stream, Seconds wanted);

/// Until the event is over. Throws Error(ExitCode::timeout) where that takes longer; after any failure the
/// transport is broken.
void wait(RankGpu& gpu, cudaEvent_t event, Seconds limit);

/// How long each of so many launches behind each other takes, the median of some tries.
Seconds time_of(Load& load, RankGpu& gpu, cudaStream_t stream, int launches);

}  // namespace polyring::cuda
