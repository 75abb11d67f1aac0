// SpinQueue: what waits for other ranks on a GPU is done one after the other, from whatever streams of this
// process it comes: kernels that wait must not keep the multiprocessors from those that they wait for.
//
// Ranks of this process that share a GPU wait for each other there, so each has a queue of its own. They are
// numbered by their order in their group; so all groups on such a GPU must have the same ranks there.
#pragma once

#include <memory>
#include <mutex>

#include "collectives/cuda/owners.hpp"

namespace polyring::cuda {

class SpinQueue {
 public:
  /// Of this GPU and the `place`-th rank on it. Never ends.
  static SpinQueue& of(int device, int place);

  /// Calls `enqueue`, which gives the stream something to do, after what came before. `ended` is recorded
  /// behind it. Keeps it.
  template <typename Enqueue>
  void add(cudaStream_t stream, const std::shared_ptr<CUevent_st>& ended, Enqueue&& enqueue) {
    const std::lock_guard lock(mutex_);
    const unsigned long long id = id_of(stream);
    if (last_ != nullptr && last_stream_ != id)
      check(cudaStreamWaitEvent(stream, last_.get(), 0), "wait for another stream (cudaStreamWaitEvent)");
    // Also where it fails half-way: what is in the stream by then comes first.
    last_stream_ = id;
    enqueue();
    check(cudaEventRecord(ended.get(), stream), "record an event (cudaEventRecord)");
    last_ = ended;
  }

 private:
  static unsigned long long id_of(cudaStream_t stream) {
    unsigned long long id = 0;
    check(cudaStreamGetId(stream, &id), "tell a stream (cudaStreamGetId)");
    return id;
  }

  std::mutex mutex_;
  std::shared_ptr<CUevent_st> last_;
  unsigned long long last_stream_ = 0;
};

}  // namespace polyring::cuda
