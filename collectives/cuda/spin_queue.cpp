#include "collectives/cuda/spin_queue.hpp"

#include <map>
#include <utility>

namespace polyring::cuda {

/// Never destroyed: at the end of the process CUDA may be gone.
SpinQueue& SpinQueue::of(int device, int place) {
  static std::mutex mutex;
  static auto& queues = *new std::map<std::pair<int, int>, SpinQueue>;
  const std::lock_guard lock(mutex);
  return queues[{device, place}];
}

}  // namespace polyring::cuda
