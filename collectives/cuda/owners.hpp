// Owners of CUDA's streams and events. All are of the device that is current where they are made.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <vector>

#include "collectives/cuda/check.hpp"

namespace polyring::cuda {

namespace internal {
struct DestroyStream {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
struct DestroyEvent {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
}  // namespace internal

using Stream = std::unique_ptr<CUstream_st, internal::DestroyStream>;
using Event = std::unique_ptr<CUevent_st, internal::DestroyEvent>;

/// One that does not wait for the default stream.
Stream make_stream();

/// Makes the device that is current now current again: others in this process go on with theirs.
class CurrentDevice {
 public:
  CurrentDevice() { check(cudaGetDevice(&device_), "say which GPU is used (cudaGetDevice)"); }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  ~CurrentDevice() { cudaSetDevice(device_); }

 private:
  int device_ = 0;
};

/// For order alone: it has no time.
Event make_event();
Event make_timed_event();
/// Of two with times, that are over.
double microseconds_between(cudaEvent_t begin, cudaEvent_t end);

/// Events that are used again and again.
class EventPool {
 public:
  Event take();
  void give_back(Event event) { free_.push_back(std::move(event)); }

 private:
  std::vector<Event> free_;
};

}  // namespace polyring::cuda
