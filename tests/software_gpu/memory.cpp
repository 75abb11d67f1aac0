#include "tests/software_gpu/memory.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>

#include "base/poison.hpp"
#include "tests/software_gpu/capture.hpp"
#include "tests/software_gpu/errors.hpp"
#include "tests/software_gpu/process.hpp"
#include "tests/software_gpu/protection.hpp"
#include "tests/software_gpu/stream.hpp"

namespace polyring::software_gpu {
namespace {

using Kind = Allocation::Kind;

std::map<const std::byte*, Allocation>& allocations() {
  static auto* const kept = new std::map<const std::byte*, Allocation>;
  return *kept;
}

/// New memory is not zero. Only the ends of large memory are set, so that it takes no time.
void fill_with_garbage(std::byte* begin, std::size_t bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  const std::size_t part = bytes < kMost ? bytes : kMost;
  std::memset(begin, 0xc9, part);
  std::memset(begin + (bytes - part), 0xc9, part);
}

std::byte* allocate(Device& device, std::size_t bytes, bool in_stream_order) {
  const bool planned = device.next_allocation(bytes).has_value();
  require(!planned && bytes <= device.plan.memory - device.allocated_bytes, cudaErrorMemoryAllocation);
  const std::size_t mapped = whole_pages(bytes);
  const int descriptor = make_shared_file("polyring software GPU", mapped);
  std::byte* const begin = map_device_memory(descriptor, mapped, device.physical, device.physical);
  if (begin == nullptr)
    fail_loudly("no addresses are left for " + std::to_string(bytes) + " bytes of device memory");
  device.allocated_bytes += bytes;
  {
    const Rights rights(only(device.physical));
    fill_with_garbage(begin, bytes);
  }
  Allocation made{
      .kind = Kind::device, .begin = begin, .bytes = bytes, .device = &device, .physical = device.physical};
  made.descriptor = descriptor;
  made.in_stream_order = in_stream_order;
  keep_allocation(made);
  guard_end(made, true);
  return begin;
}

/// Other processes that have opened this memory, and touch it from now on, fail.
void release(const Allocation& allocation) {
  guard_end(allocation, false);
  unmap_device_memory(allocation.begin);
  [[maybe_unused]] const int truncated = ftruncate(allocation.descriptor, 0);
  close(allocation.descriptor);
  allocation.device->allocated_bytes -= allocation.bytes;
  forget_allocation(allocation.begin);
}

/// The device memory that begins here; throws Failure where none does.
Allocation& own_device_memory(void* pointer) {
  Allocation* const found = find_allocation(pointer);
  require(found != nullptr && found->kind == Kind::device && found->begin == pointer, cudaErrorInvalidValue);
  return *found;
}

bool overlaps_known(const std::byte* begin, std::size_t bytes) {
  const auto after = allocations().lower_bound(begin + bytes);
  if (after == allocations().begin()) return false;
  const Allocation& before = std::prev(after)->second;
  return before.begin + before.bytes > begin;
}

}  // namespace

Allocation* find_allocation(const void* address) {
  const auto* const byte = static_cast<const std::byte*>(address);
  const auto after = allocations().upper_bound(byte);
  if (after == allocations().begin()) return nullptr;
  Allocation& before = std::prev(after)->second;
  return byte < before.begin + before.bytes ? &before : nullptr;
}

void keep_allocation(const Allocation& allocation) { allocations().emplace(allocation.begin, allocation); }
void forget_allocation(const std::byte* begin) { allocations().erase(begin); }

bool has_opened_memory_of(int physical) {
  return std::ranges::any_of(allocations(), [&](const auto& row) {
    return row.second.kind == Kind::imported && row.second.physical == physical;
  });
}

std::size_t whole_pages(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

int make_shared_file(const char* name, std::size_t bytes) {
  const int descriptor = memfd_create(name, MFD_CLOEXEC);
  if (descriptor < 0) fail_loudly(std::string("memfd_create: ") + std::strerror(errno));
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) {
    close(descriptor);
    throw Failure{cudaErrorMemoryAllocation};
  }
  return descriptor;
}

void guard_end(const Allocation& allocation, bool guard) {
  const auto change = guard ? poison : unpoison;
  change(allocation.begin + allocation.bytes, whole_pages(allocation.bytes) - allocation.bytes);
}

}  // namespace polyring::software_gpu

using namespace polyring::software_gpu;

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return call(Needs::working, [&] {
    Process& process = Process::get();
    const std::lock_guard lock(process.mutex);
    require(pointer != nullptr, cudaErrorInvalidValue);
    refuse_unsafe_call();
    *pointer = bytes == 0 ? nullptr : allocate(process.current(), bytes, false);
  });
}

cudaError_t cudaFree(void* pointer) {
  return call(Needs::working, [&] {
    Process& process = Process::get();
    std::unique_lock lock(process.mutex);
    refuse_unsafe_call();
    if (pointer == nullptr) return;
    const Allocation freed = own_device_memory(pointer);
    const std::vector<Point> ends = ends_of(*freed.device);
    lock.unlock();
    wait_for(ends, *freed.device);
    lock.lock();
    release(own_device_memory(pointer));
  });
}

cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    require(pointer != nullptr && bytes > 0, cudaErrorInvalidValue);
    const Stream& in = stream_of(stream);
    if (in.capture != nullptr) fail_loudly("cudaMallocAsync in a capture is not implemented");
    *pointer = allocate(in.device, bytes, true);
  });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    if (pointer == nullptr) return;
    Stream& in = stream_of(stream);
    if (in.capture != nullptr) fail_loudly("cudaFreeAsync in a capture is not implemented");
    require(own_device_memory(pointer).in_stream_order, cudaErrorInvalidValue);
    Operation operation{.what = "free", .run = [pointer] {
                          const std::lock_guard run_lock(Process::get().mutex);
                          release(own_device_memory(pointer));
                        }};
    operation.counts = false;
    submit(in, std::move(operation));
  });
}

cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return call(Needs::working, [&] {
    Process& process = Process::get();
    const std::lock_guard lock(process.mutex);
    constexpr unsigned kAll = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
    require(pointer != nullptr && (flags & ~kAll) == 0, cudaErrorInvalidValue);
    refuse_unsafe_call();
    if (bytes == 0) {
      *pointer = nullptr;
      return;
    }
    auto* const begin = static_cast<std::byte*>(std::aligned_alloc(4096, whole_pages(bytes)));
    require(begin != nullptr, cudaErrorMemoryAllocation);
    fill_with_garbage(begin, bytes);
    const Allocation made{.kind = Kind::pinned,
                          .begin = begin,
                          .bytes = bytes,
                          .device = &process.current(),
                          .physical = -1,
                          .flags = flags};
    keep_allocation(made);
    guard_end(made, true);
    *pointer = begin;
  });
}

cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return cudaHostAlloc(pointer, bytes, cudaHostAllocDefault);
}

cudaError_t cudaFreeHost(void* pointer) {
  return call(Needs::working, [&] {
    Process& process = Process::get();
    std::unique_lock lock(process.mutex);
    refuse_unsafe_call();
    if (pointer == nullptr) return;
    const Allocation* const found = find_allocation(pointer);
    require(found != nullptr && found->kind == Kind::pinned && found->begin == pointer,
            cudaErrorInvalidValue);
    const Allocation freed = *found;
    const std::vector<Point> ends = ends_of(*freed.device);
    lock.unlock();
    wait_for(ends, *freed.device);
    lock.lock();
    guard_end(freed, false);
    forget_allocation(freed.begin);
    std::free(pointer);
  });
}

cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  return call(Needs::working, [&] {
    Process& process = Process::get();
    const std::lock_guard lock(process.mutex);
    constexpr unsigned kAll = cudaHostRegisterPortable | cudaHostRegisterMapped | cudaHostRegisterReadOnly;
    require(pointer != nullptr && bytes > 0 && (flags & ~kAll) == 0, cudaErrorInvalidValue);
    refuse_unsafe_call();
    auto* const begin = static_cast<std::byte*>(pointer);
    require(!overlaps_known(begin, bytes), cudaErrorHostMemoryAlreadyRegistered);
    keep_allocation({.kind = Kind::registered,
                     .begin = begin,
                     .bytes = bytes,
                     .device = &process.current(),
                     .physical = -1,
                     .flags = flags});
  });
}

cudaError_t cudaHostUnregister(void* pointer) {
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    refuse_unsafe_call();
    const Allocation* const found = find_allocation(pointer);
    const bool known_here = found != nullptr && found->kind == Kind::registered && found->begin == pointer;
    require(known_here, cudaErrorHostMemoryNotRegistered);
    forget_allocation(found->begin);
  });
}

cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* pointer, unsigned flags) {
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    const Allocation* const found = find_allocation(pointer);
    const bool host = found != nullptr && !found->on_device();
    require(device_pointer != nullptr && flags == 0 && host, cudaErrorInvalidValue);
    *device_pointer = pointer;
  });
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* pointer) {
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    const Allocation* const found = find_allocation(pointer);
    require(flags != nullptr && found != nullptr && found->kind == Kind::pinned, cudaErrorInvalidValue);
    *flags = found->flags | cudaHostAllocMapped;
  });
}

cudaError_t cudaMemGetInfo(size_t* unused, size_t* total) {
  return call(Needs::working, [&] {
    const Process& process = Process::get();
    const Device& device = process.current();
    require(unused != nullptr && total != nullptr, cudaErrorInvalidValue);
    *total = device.plan.memory;
    *unused = device.plan.memory - device.allocated_bytes;
  });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    require(attributes != nullptr && pointer != nullptr, cudaErrorInvalidValue);
    *attributes = {};
    const Allocation* const found = find_allocation(pointer);
    void* const address = const_cast<void*>(pointer);
    attributes->type = found == nullptr     ? cudaMemoryTypeUnregistered
                       : found->on_device() ? cudaMemoryTypeDevice
                                            : cudaMemoryTypeHost;
    attributes->device = found == nullptr ? cudaInvalidDeviceId : found->device->ordinal;
    attributes->devicePointer = found == nullptr ? nullptr : address;
    attributes->hostPointer = found != nullptr && found->on_device() ? nullptr : address;
  });
}
}
