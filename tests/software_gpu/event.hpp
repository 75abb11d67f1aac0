// Events: a moment in a stream, that of the last record.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "tests/software_gpu/capture.hpp"
#include "tests/software_gpu/device.hpp"
#include "tests/software_gpu/gate.hpp"

namespace polyring::software_gpu {

/// What processes share of an event. Generation g is done when its gate has reached g.
struct SharedEvent {
  std::atomic<std::uint32_t> recorded;
  std::array<Gate, 64> done;
};

class Event {
 public:
  Event(Device& its_device, unsigned its_flags) : device(its_device), flags(its_flags) {}

  Device& device;
  const unsigned flags;

  // Under Process::mutex.
  std::shared_ptr<SharedEvent> shared;  // null unless cudaEventInterprocess
  int descriptor = -1;                  // of the shared memory, in the process that made it
  CapturedPoint captured;
  std::shared_ptr<std::atomic<std::int64_t>> time_ns;  // of the last record; null before it

  void record(Stream& stream);
  /// The last record, done or not.
  Point last() const;

 private:
  Point point_;
};

/// The event of a handle; throws Failure where there is none. Process::mutex is held.
Event& event_of(cudaEvent_t handle);
cudaEvent_t keep_event(std::shared_ptr<Event> event);

}  // namespace polyring::software_gpu
