// Questions on events.
#include <cuda_runtime_api.h>

#include "tests/software_gpu/conformance/questions.hpp"
#include "tests/software_gpu/conformance/tools.hpp"

namespace polyring::software_gpu {
namespace {

std::string elapsed(cudaEvent_t start, cudaEvent_t end) {
  float milliseconds = -1;
  const cudaError_t code = cudaEventElapsedTime(&milliseconds, start, end);
  if (code != cudaSuccess) return named(code);
  return milliseconds >= 0 ? "not negative" : "negative";
}

std::string elapsed_when_done() {
  const OwnStream stream;
  const OwnEvent start, end;
  NEED(cudaEventRecord(start, stream));
  NEED(cudaEventRecord(end, stream));
  NEED(cudaEventSynchronize(end));
  return elapsed(start, end);
}

std::string elapsed_while_held() {
  const OwnStream stream;
  const OwnEvent start, end;
  NEED(cudaEventRecord(start, stream));
  Hold hold(stream);
  NEED(cudaEventRecord(end, stream));
  return elapsed(start, end);
}

std::string elapsed_without_timing() {
  const OwnStream stream;
  const OwnEvent start(cudaEventDisableTiming), end(cudaEventDisableTiming);
  NEED(cudaEventRecord(start, stream));
  NEED(cudaEventRecord(end, stream));
  NEED(cudaEventSynchronize(end));
  return elapsed(start, end);
}

/// Waits for an event that was recorded in a stream that went on, and is then recorded in one that is held.
std::string wait_before_second_record() {
  const OwnStream free, held, waiting;
  const OwnEvent event;
  NEED(cudaEventRecord(event, free));
  NEED(cudaStreamSynchronize(free));
  return waits_for(held, [&] {
    NEED(cudaStreamWaitEvent(waiting, event, 0));
    NEED(cudaEventRecord(event, held));
    NEED(cudaStreamSynchronize(waiting));
  });
}

std::string second_record_counts() {
  const OwnStream free, held, waiting;
  const OwnEvent event;
  return waits_for(held, [&] {
    NEED(cudaEventRecord(event, free));
    NEED(cudaEventRecord(event, held));
    NEED(cudaStreamWaitEvent(waiting, event, 0));
    NEED(cudaStreamSynchronize(waiting));
  });
}

std::string wait_orders_streams() {
  const OwnStream first, second;
  const OwnEvent event(cudaEventDisableTiming);
  const DeviceWords words(1);
  {
    Hold hold(first);
    words.add(3, first);
    NEED(cudaEventRecord(event, first));
    NEED(cudaStreamWaitEvent(second, event, 0));
    NEED(cudaMemsetAsync(words.get(), 0, sizeof(unsigned), second));
    words.add(4, second);
  }
  return std::to_string(words.first());
}

std::string wait_for_unrecorded() {
  const OwnStream held, stream;
  const OwnEvent event;
  return waits_for(held, [&] {
    NEED(cudaStreamWaitEvent(stream, event, 0));
    NEED(cudaStreamSynchronize(stream));
  });
}

std::string destroy_before_it_happens() {
  const OwnStream first, second;
  return waits_for(first, [&] {
    cudaEvent_t event = nullptr;
    NEED(cudaEventCreate(&event));
    NEED(cudaEventRecord(event, first));
    NEED(cudaStreamWaitEvent(second, event, 0));
    NEED(cudaEventDestroy(event));
  });
}

/// Still waits for an event that is destroyed.
std::string wait_for_destroyed() {
  const OwnStream first, second;
  return waits_for(first, [&] {
    cudaEvent_t event = nullptr;
    NEED(cudaEventCreate(&event));
    NEED(cudaEventRecord(event, first));
    NEED(cudaStreamWaitEvent(second, event, 0));
    NEED(cudaEventDestroy(event));
    NEED(cudaStreamSynchronize(second));
  });
}

std::string record_on_other_device() {
  const OwnEvent event;
  NEED(cudaSetDevice(1));
  const OwnStream stream;
  NEED(cudaSetDevice(0));
  return named(cudaEventRecord(event, stream));
}

std::string wait_across_devices() {
  const OwnStream held;
  NEED(cudaSetDevice(1));
  const OwnStream other;
  NEED(cudaSetDevice(0));
  const OwnEvent event;
  return waits_for(held, [&] {
    NEED(cudaEventRecord(event, held));
    NEED(cudaStreamWaitEvent(other, event, 0));
    NEED(cudaStreamSynchronize(other));
  });
}

std::string query(bool held) {
  const OwnStream stream;
  const OwnEvent event;
  Hold hold(stream);
  NEED(cudaEventRecord(event, stream));
  if (!held) {
    hold.release();
    NEED(cudaEventSynchronize(event));
  }
  return named(cudaEventQuery(event));
}

const Question kQuestions[] = {
    {"event.query_unrecorded",
     [] {
       const OwnEvent event;
       return named(cudaEventQuery(event));
     }},
    {"event.query_while_held", [] { return query(true); }},
    {"event.query_when_done", [] { return query(false); }},
    {"event.elapsed_when_done", elapsed_when_done},
    {"event.elapsed_while_held", elapsed_while_held},
    {"event.elapsed_unrecorded",
     [] {
       const OwnEvent start, end;
       return elapsed(start, end);
     }},
    {"event.elapsed_without_timing", elapsed_without_timing},
    {"event.wait_orders_streams", wait_orders_streams},
    {"event.wait_for_unrecorded", wait_for_unrecorded},
    {"event.wait_before_second_record", wait_before_second_record},
    {"event.wait_after_second_record", second_record_counts},
    {"event.destroy_while_held", destroy_before_it_happens},
    {"event.wait_for_destroyed", wait_for_destroyed},
    {"event.between_processes_with_timing",
     [] {
       cudaEvent_t event = nullptr;
       return named(cudaEventCreateWithFlags(&event, cudaEventInterprocess));
     }},
    {"event.record_on_other_device", record_on_other_device, 2},
    {"event.wait_across_devices", wait_across_devices, 2},
};

}  // namespace

std::span<const Question> event_questions() { return kQuestions; }

}  // namespace polyring::software_gpu
