// ActivityLog: when the copies and kernels of a rank's transport begin and end on the GPU, where that is
// asked for.
#pragma once

#include <vector>

#include "collectives/cuda/gpu.hpp"
#include "collectives/cuda/owners.hpp"

namespace polyring::cuda {

class ActivityLog {
 public:
  void record(bool on) { on_ = on; }

  /// Calls `enqueue`, which gives the stream one thing to do.
  template <typename Enqueue>
  void add(GpuActivity::Kind kind, cudaStream_t stream, Enqueue&& enqueue) {
    if (!on_) return enqueue();
    begin(kind, stream);
    enqueue();
    end(stream);
  }

  /// All since the last call, in time since that event. They must be over.
  std::vector<GpuActivity> take(cudaEvent_t since);
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    GpuActivity::Kind kind;
    Event begin;
    Event end;
  };

  void begin(GpuActivity::Kind kind, cudaStream_t stream);
  void end(cudaStream_t stream);

  bool on_ = false;
  std::vector<Entry> entries_;
};

}  // namespace polyring::cuda
