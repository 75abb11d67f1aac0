// Calls of the API on streams, except for captures.
#include <cuda_runtime_api.h>

#include <algorithm>

#include "tests/software_gpu/capture.hpp"
#include "tests/software_gpu/errors.hpp"
#include "tests/software_gpu/process.hpp"
#include "tests/software_gpu/stream.hpp"

namespace {

constexpr int kLowestPriority = 0;
constexpr int kHighestPriority = -5;

}  // namespace

using namespace polyring::software_gpu;

extern "C" {

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* handle, unsigned flags, int priority) {
  return call(Needs::working, [&] {
    require(handle != nullptr && (flags & ~unsigned{cudaStreamNonBlocking}) == 0, cudaErrorInvalidValue);
    Process& process = Process::get();
    const std::lock_guard lock(process.mutex);
    const auto kind = flags == cudaStreamNonBlocking ? Stream::Kind::non_blocking : Stream::Kind::blocking;
    const int allowed = std::clamp(priority, kHighestPriority, kLowestPriority);
    *handle = reinterpret_cast<cudaStream_t>(make_stream(process.current(), kind, allowed).get());
  });
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* handle, unsigned flags) {
  return cudaStreamCreateWithPriority(handle, flags, kLowestPriority);
}

cudaError_t cudaStreamCreate(cudaStream_t* handle) {
  return cudaStreamCreateWithFlags(handle, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t handle) {
  return call(Needs::devices, [&] {
    const std::lock_guard lock(Process::get().mutex);
    require(handle != nullptr && handle != cudaStreamLegacy && handle != cudaStreamPerThread,
            cudaErrorInvalidResourceHandle);
    destroy_stream(handle);
  });
}

cudaError_t cudaStreamQuery(cudaStream_t handle) {
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    const Stream& stream = stream_of(handle);
    refuse_default_stream_in_capture(stream);
    refuse_if_capturing(stream);
    refuse_unsafe_call();
    require(stream.device.error() == cudaSuccess, stream.device.error());
    require(stream.end().reached(), cudaErrorNotReady);
  });
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle) {
  return call(Needs::working, [&] {
    std::unique_lock lock(Process::get().mutex);
    const Stream& stream = stream_of(handle);
    refuse_default_stream_in_capture(stream);
    refuse_if_capturing(stream);
    refuse_unsafe_call();
    const Point end = stream.end();
    const Device& device = stream.device;
    lock.unlock();
    wait_for({end}, device);
  });
}

cudaError_t cudaDeviceSynchronize(void) {
  return call(Needs::working, [&] {
    Process& process = Process::get();
    std::unique_lock lock(process.mutex);
    Device& device = process.current();
    refuse_if_device_captures(device);
    refuse_unsafe_call();
    const std::vector<Point> ends = ends_of(device);
    lock.unlock();
    wait_for(ends, device);
  });
}

cudaError_t cudaStreamGetFlags(cudaStream_t handle, unsigned* flags) {
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    require(flags != nullptr, cudaErrorInvalidValue);
    const bool non_blocking = stream_of(handle).kind == Stream::Kind::non_blocking;
    *flags = non_blocking ? cudaStreamNonBlocking : cudaStreamDefault;
  });
}

cudaError_t cudaStreamGetPriority(cudaStream_t handle, int* priority) {
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    require(priority != nullptr, cudaErrorInvalidValue);
    *priority = stream_of(handle).priority;
  });
}

cudaError_t cudaStreamGetId(cudaStream_t handle, unsigned long long* id) {
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    require(id != nullptr, cudaErrorInvalidValue);
    *id = stream_of(handle).id;
  });
}

#if CUDART_VERSION >= 12080
cudaError_t cudaStreamGetDevice(cudaStream_t handle, int* device) {
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    require(device != nullptr, cudaErrorInvalidValue);
    *device = stream_of(handle).device.ordinal;
  });
}
#endif

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call(Needs::working, [&] {
    if (least != nullptr) *least = kLowestPriority;
    if (greatest != nullptr) *greatest = kHighestPriority;
  });
}

cudaError_t cudaLaunchHostFunc(cudaStream_t handle, cudaHostFn_t function, void* data) {
  return call(Needs::working, [&] {
    require(function != nullptr, cudaErrorInvalidValue);
    const std::lock_guard lock(Process::get().mutex);
    submit(stream_of(handle), {.what = "host function", .run = [function, data] {
                                 set_in_host_function(true);
                                 function(data);
                                 set_in_host_function(false);
                               }});
  });
}
}
