#include "collectives/cuda/owners.hpp"

#include <utility>

namespace polyring::cuda {

Stream make_stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
        "make a stream (cudaStreamCreateWithFlags)");
  return Stream(stream);
}

Event make_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "make an event (cudaEventCreateWithFlags)");
  return Event(event);
}

Event make_timed_event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, cudaEventDefault), "make an event (cudaEventCreateWithFlags)");
  return Event(event);
}

double microseconds_between(cudaEvent_t begin, cudaEvent_t end) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin, end),
        "tell the time between events (cudaEventElapsedTime)");
  return 1e3 * double{milliseconds};
}

Event EventPool::take() {
  if (free_.empty()) return make_event();
  Event event = std::move(free_.back());
  free_.pop_back();
  return event;
}

}  // namespace polyring::cuda
