#include "tests/software_gpu/event.hpp"

#include <chrono>
#include <unordered_map>

#include "tests/software_gpu/errors.hpp"
#include "tests/software_gpu/process.hpp"
#include "tests/software_gpu/shared_event.hpp"

namespace polyring::software_gpu {
namespace {

std::unordered_map<cudaEvent_t, std::shared_ptr<Event>>& events() {
  static auto* const kept = new std::unordered_map<cudaEvent_t, std::shared_ptr<Event>>;
  return *kept;
}

std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// The last record of an event outside of captures; refuses where the event cannot be asked now.
Point askable(const Event& event) {
  if (event.captured.capture != nullptr) refuse_in_capture(*event.captured.capture, cudaErrorCapturedEvent);
  return event.last();
}

}  // namespace

void Event::record(Stream& stream) {
  require(&stream.device == &device, cudaErrorInvalidResourceHandle);
  if (stream.capture != nullptr) {
    captured = captured_point(stream);
    return;
  }
  captured = {};
  auto time = std::make_shared<std::atomic<std::int64_t>>(0);
  const std::uint32_t generation = shared != nullptr ? ++shared->recorded : 0;
  Operation operation{.what = "event", .run = [time, page = shared, generation] {
                        time->store(now_ns());
                        if (page != nullptr) page->done[generation % page->done.size()].advance(generation);
                      }};
  operation.counts = false;
  operation.on_lost_device = true;
  point_ = submit(stream, std::move(operation));
  time_ns = std::move(time);
}

Point Event::last() const {
  if (shared == nullptr) return point_;
  const std::uint32_t generation = shared->recorded.load();
  if (generation == 0) return {};
  return {std::shared_ptr<const Gate>(shared, &shared->done[generation % shared->done.size()]), generation};
}

Event& event_of(cudaEvent_t handle) {
  const auto found = events().find(handle);
  require(found != events().end(), cudaErrorInvalidResourceHandle);
  return *found->second;
}

cudaEvent_t keep_event(std::shared_ptr<Event> event) {
  const auto handle = reinterpret_cast<cudaEvent_t>(event.get());
  events().emplace(handle, std::move(event));
  return handle;
}

}  // namespace polyring::software_gpu

using namespace polyring::software_gpu;

extern "C" {

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return call(Needs::working, [&] {
    constexpr unsigned kAll = cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
    const bool timed = (flags & cudaEventDisableTiming) == 0;
    const bool between_processes = (flags & cudaEventInterprocess) != 0;
    require(event != nullptr && (flags & ~kAll) == 0 && !(timed && between_processes), cudaErrorInvalidValue);
    Process& process = Process::get();
    const std::lock_guard lock(process.mutex);
    auto made = std::make_shared<Event>(process.current(), flags);
    if (between_processes) share_event(*made);
    *event = keep_event(std::move(made));
  });
}

cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return call(Needs::devices, [&] {
    const std::lock_guard lock(Process::get().mutex);
    unshare_event(event_of(event));
    events().erase(event);
  });
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    event_of(event).record(stream_of(stream));
  });
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags != cudaEventRecordDefault) fail_loudly("cudaEventRecordExternal is not implemented");
  return cudaEventRecord(event, stream);
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  if (flags != cudaEventWaitDefault) fail_loudly("cudaEventWaitExternal is not implemented");
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    Stream& waiting = stream_of(stream);
    const Event& awaited = event_of(event);
    if (awaited.captured.capture != nullptr) return join_capture(waiting, awaited.captured);
    if (waiting.capture != nullptr) refuse_in_capture(*waiting.capture, cudaErrorStreamCaptureIsolation);
    Operation operation{.what = "wait for an event", .run = [] {}};
    operation.counts = false;
    operation.after = {awaited.last()};
    submit(waiting, std::move(operation));
  });
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    const Event& asked = event_of(event);
    const Point last = askable(asked);
    refuse_unsafe_call();
    require(asked.device.error() == cudaSuccess, asked.device.error());
    require(last.reached(), cudaErrorNotReady);
  });
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call(Needs::working, [&] {
    Process& process = Process::get();
    std::unique_lock lock(process.mutex);
    const Event& awaited = event_of(event);
    const Point last = askable(awaited);
    refuse_unsafe_call();
    Device& device = awaited.device;
    lock.unlock();
    wait_for({last}, device);
  });
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    require(milliseconds != nullptr, cudaErrorInvalidValue);
    const Event& first = event_of(start);
    const Event& second = event_of(end);
    for (const Event* event : {&first, &second}) {
      const bool timed = (event->flags & cudaEventDisableTiming) == 0 && event->time_ns != nullptr;
      require(timed && event->captured.capture == nullptr, cudaErrorInvalidResourceHandle);
    }
    require(&first.device == &second.device, cudaErrorInvalidResourceHandle);
    require(first.last().reached() && second.last().reached(), cudaErrorNotReady);
    *milliseconds = static_cast<float>(second.time_ns->load() - first.time_ns->load()) * 1e-6f;
  });
}
}
