// Copies and memsets. Memory of devices and pinned memory is read and written when the operation runs, so a
// program that changes it too early gets wrong data.
#include <cuda_runtime_api.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/software_gpu/capture.hpp"
#include "tests/software_gpu/errors.hpp"
#include "tests/software_gpu/memory.hpp"
#include "tests/software_gpu/process.hpp"
#include "tests/software_gpu/protection.hpp"
#include "tests/software_gpu/stream.hpp"

namespace polyring::software_gpu {
namespace {

enum class Place { device, pinned, pageable };

/// Where `bytes` bytes are; throws Failure where they reach over the end of an allocation.
Place place_of(const void* pointer, std::size_t bytes) {
  const Allocation* const found = find_allocation(pointer);
  if (found == nullptr) return Place::pageable;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - found->begin);
  require(found->kind == Allocation::Kind::registered || bytes <= found->bytes - offset,
          cudaErrorInvalidValue);
  if (found->on_device()) return Place::device;
  return bytes <= found->bytes - offset ? Place::pinned : Place::pageable;
}

/// Devices reach pinned memory by the same address, so it may be called either.
void check_side(Place place, bool said_device) {
  if (said_device)
    require(place != Place::pageable, cudaErrorInvalidValue);
  else
    require(place != Place::device, cudaErrorInvalidValue);
}

void check_kind(Place to, Place from, cudaMemcpyKind kind) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return check_side(to, false), check_side(from, false);
    case cudaMemcpyHostToDevice:
      return check_side(to, true), check_side(from, false);
    case cudaMemcpyDeviceToHost:
      return check_side(to, false), check_side(from, true);
    case cudaMemcpyDeviceToDevice:
      return check_side(to, true), check_side(from, true);
    case cudaMemcpyDefault:
      return;
  }
  throw Failure{cudaErrorInvalidMemcpyDirection};
}

void with_all_memory(const char* what, const std::function<void()>& work) {
  if (!touches_other_memory(kAllDevices, work)) return;
  say(std::string(what) + " touched memory that is not there any more");
  throw Failure{cudaErrorIllegalAddress};
}

Operation copy_operation(void* to, const void* from, std::size_t bytes) {
  return {.what = "copy", .run = [=] { with_all_memory("a copy", [=] { std::memmove(to, from, bytes); }); }};
}

/// The bytes are taken now, and given to the device later.
Operation staged_copy_operation(void* to, const void* from, std::size_t bytes) {
  const auto* const begin = static_cast<const std::byte*>(from);
  auto staged = std::make_shared<std::vector<std::byte>>(begin, begin + bytes);
  return {.what = "copy",
          .run = [=] { with_all_memory("a copy", [&] { std::memcpy(to, staged->data(), bytes); }); }};
}

/// Does one copy in a stream. `lock` is of Process::mutex; it is open afterwards where the host waited.
void copy(std::unique_lock<std::mutex>& lock, void* to, const void* from, std::size_t bytes,
          cudaMemcpyKind kind, cudaStream_t handle, bool synchronous) {
  Stream& stream = stream_of(handle);
  if (synchronous) {
    refuse_default_stream_in_capture(stream);
    refuse_unsafe_call();
  }
  if (bytes == 0) return;
  require(to != nullptr && from != nullptr, cudaErrorInvalidValue);
  const Place target = place_of(to, bytes), source = place_of(from, bytes);
  check_kind(target, source, kind);
  Device& device = stream.device;
  if (stream.capture != nullptr) {
    submit(stream, copy_operation(to, from, bytes));
    return;
  }
  if (target == Place::device && source == Place::pageable) {
    if (synchronous) {
      const Point before = stream.end();
      lock.unlock();
      wait_for({before}, device);
      lock.lock();
    }
    submit(stream, staged_copy_operation(to, from, bytes));
    return;
  }
  const Point end = submit(stream, copy_operation(to, from, bytes));
  const bool from_host_to_host = target != Place::device && source != Place::device;
  const bool between_devices = target == Place::device && source == Place::device;
  if (from_host_to_host || target == Place::pageable || (synchronous && !between_devices)) {
    lock.unlock();
    wait_for({end}, device);
  }
}

/// A pointer that is said to be on a device must be on that device.
void check_device(const void* pointer, int device) {
  const Allocation* const found = find_allocation(pointer);
  const bool there =
      found != nullptr && found->on_device() && found->device == &Process::get().device(device);
  require(there, cudaErrorInvalidValue);
}

void set(std::unique_lock<std::mutex>& lock, void* to, int value, std::size_t bytes, cudaStream_t handle,
         bool synchronous) {
  Stream& stream = stream_of(handle);
  if (synchronous) {
    refuse_default_stream_in_capture(stream);
    refuse_unsafe_call();
  }
  if (bytes == 0) return;
  const Place target = place_of(to, bytes);
  require(target != Place::pageable, cudaErrorInvalidValue);
  Device& device = stream.device;
  const Point end = submit(stream, {.what = "memset", .run = [=] {
                                      with_all_memory("a memset", [=] { std::memset(to, value, bytes); });
                                    }});
  if (synchronous && target == Place::pinned) {
    lock.unlock();
    wait_for({end}, device);
  }
}

}  // namespace
}  // namespace polyring::software_gpu

using namespace polyring::software_gpu;

extern "C" {

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return call(Needs::working, [&] {
    std::unique_lock lock(Process::get().mutex);
    copy(lock, to, from, bytes, kind, cudaStreamLegacy, true);
  });
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream) {
  return call(Needs::working, [&] {
    std::unique_lock lock(Process::get().mutex);
    copy(lock, to, from, bytes, kind, stream, false);
  });
}

cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, size_t bytes,
                                cudaStream_t stream) {
  return call(Needs::working, [&] {
    std::unique_lock lock(Process::get().mutex);
    check_device(to, to_device);
    check_device(from, from_device);
    copy(lock, to, from, bytes, cudaMemcpyDeviceToDevice, stream, false);
  });
}

cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, size_t bytes) {
  return call(Needs::working, [&] {
    Process& process = Process::get();
    std::unique_lock lock(process.mutex);
    check_device(to, to_device);
    check_device(from, from_device);
    std::vector<Point> before = ends_of(process.device(to_device));
    const std::vector<Point> others = ends_of(process.device(from_device));
    before.insert(before.end(), others.begin(), others.end());
    lock.unlock();
    wait_for(before, process.current());
    lock.lock();
    copy(lock, to, from, bytes, cudaMemcpyDeviceToDevice, cudaStreamLegacy, true);
  });
}

cudaError_t cudaMemset(void* to, int value, size_t bytes) {
  return call(Needs::working, [&] {
    std::unique_lock lock(Process::get().mutex);
    set(lock, to, value, bytes, cudaStreamLegacy, true);
  });
}

cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  return call(Needs::working, [&] {
    std::unique_lock lock(Process::get().mutex);
    set(lock, to, value, bytes, stream, false);
  });
}
}
