// Memory and events between processes. A handle names an open file of the process that made it, so that
// nothing stays behind when processes are killed, and a handle of freed memory opens nothing.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "tests/software_gpu/errors.hpp"
#include "tests/software_gpu/memory.hpp"
#include "tests/software_gpu/process.hpp"
#include "tests/software_gpu/protection.hpp"
#include "tests/software_gpu/shared_event.hpp"

namespace polyring::software_gpu {
namespace {

struct Handle {
  std::uint64_t magic;
  std::int32_t process;
  std::int32_t descriptor;
  std::uint64_t inode;  // tells the file from a later one with the same descriptor
  std::uint64_t bytes;
  std::uint64_t host;
  std::int32_t physical;  // the device
};
static_assert(sizeof(Handle) <= CUDA_IPC_HANDLE_SIZE);

constexpr std::uint64_t kMemory = 0x706f6c7972696e67, kEvent = 0x706f6c7972696e68;

/// CUDA's handles hold on one host. Emulated hosts share their processes' numbers, but not their names.
std::uint64_t host_number() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return std::hash<std::string>{}(name);
}

std::uint64_t inode_of(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 ? status.st_ino : 0;
}

template <typename CudaHandle>
void write_handle(CudaHandle& to, std::uint64_t magic, int descriptor, std::size_t bytes, int physical) {
  const Handle handle{magic, getpid(), descriptor, inode_of(descriptor), bytes, host_number(), physical};
  to = {};
  std::memcpy(&to, &handle, sizeof handle);
}

template <typename CudaHandle>
Handle read_handle(const CudaHandle& from, std::uint64_t magic) {
  Handle handle;
  std::memcpy(&handle, &from, sizeof handle);
  require(handle.magic == magic && handle.host == host_number(), cudaErrorInvalidValue);
  require(handle.process != getpid(), cudaErrorDeviceUninitialized);
  return handle;
}

/// The other process's file; -1 where it is gone.
int open_file(const Handle& handle) {
  const std::string path =
      "/proc/" + std::to_string(handle.process) + "/fd/" + std::to_string(handle.descriptor);
  const int descriptor = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor < 0 && errno != ENOENT) say("cannot open " + path + ": " + std::strerror(errno));
  if (descriptor >= 0 && inode_of(descriptor) != handle.inode) {
    close(descriptor);
    return -1;
  }
  return descriptor;
}

std::shared_ptr<SharedEvent> map_event(int descriptor) {
  void* const mapped = mmap(nullptr, sizeof(SharedEvent), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (mapped == MAP_FAILED) fail_loudly("cannot map an event between processes");
  return {static_cast<SharedEvent*>(mapped), [](SharedEvent* event) { munmap(event, sizeof *event); }};
}

struct Import {
  std::int32_t process;
  std::uint64_t inode;
  std::byte* begin;
};

std::vector<Import>& imports() {
  static auto* const opened = new std::vector<Import>;
  return *opened;
}

Allocation* opened_before(const Handle& handle) {
  for (const Import& import : imports())
    if (import.process == handle.process && import.inode == handle.inode)
      return find_allocation(import.begin);
  return nullptr;
}

Allocation* open_memory(const Handle& handle, Device& device) {
  const int descriptor = open_file(handle);
  require(descriptor >= 0, cudaErrorInvalidValue);
  std::byte* const begin = map_device_memory(descriptor, whole_pages(handle.bytes), handle.physical, -1);
  close(descriptor);
  if (begin == nullptr) fail_loudly("no addresses are left for memory of other processes");
  Device* const owner = Process::get().of_physical(handle.physical);
  keep_allocation({.kind = Allocation::Kind::imported,
                   .begin = begin,
                   .bytes = handle.bytes,
                   .device = owner != nullptr ? owner : &device,
                   .physical = handle.physical});
  imports().push_back({handle.process, handle.inode, begin});
  Allocation* const opened = find_allocation(begin);
  guard_end(*opened, true);
  return opened;
}

/// After the last memory of a device is closed, those that it was opened for reach no more of that device.
void end_lazy_access(int physical) {
  if (has_opened_memory_of(physical)) return;
  const Process& process = Process::get();
  for (int ordinal = 0; ordinal < process.device_count(); ++ordinal) {
    Device& device = process.device(ordinal);
    const bool keeps = device.physical == physical || (device.enabled_peers & only(physical)) != 0;
    if (!keeps) device.reduce_reach(physical);
  }
}

}  // namespace

void share_event(Event& event) {
  event.descriptor = make_shared_file("polyring software GPU event", sizeof(SharedEvent));
  event.shared = map_event(event.descriptor);
}

void unshare_event(Event& event) {
  if (event.descriptor >= 0) close(event.descriptor);
}

}  // namespace polyring::software_gpu

using namespace polyring::software_gpu;

extern "C" {

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* pointer) {
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    const Allocation* const found = find_allocation(pointer);
    const bool own = found != nullptr && found->kind == Allocation::Kind::device && !found->in_stream_order;
    require(handle != nullptr && own, cudaErrorInvalidValue);
    write_handle(*handle, kMemory, found->descriptor, found->bytes, found->physical);
  });
}

cudaError_t cudaIpcOpenMemHandle(void** pointer, cudaIpcMemHandle_t from, unsigned flags) {
  return call(Needs::working, [&] {
    Process& process = Process::get();
    const std::lock_guard lock(process.mutex);
    require(pointer != nullptr && flags == cudaIpcMemLazyEnablePeerAccess, cudaErrorInvalidValue);
    const Handle handle = read_handle(from, kMemory);
    Device& device = process.current();
    const bool reachable = device.physical == handle.physical || device.is_peer(handle.physical);
    require(reachable, cudaErrorPeerAccessUnsupported);
    Allocation* opened = opened_before(handle);
    if (opened == nullptr) opened = open_memory(handle, device);
    ++opened->opened;
    device.extend_reach(handle.physical);
    *pointer = opened->begin;
  });
}

cudaError_t cudaIpcCloseMemHandle(void* pointer) {
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    Allocation* const found = find_allocation(pointer);
    const bool imported = found != nullptr && found->kind == Allocation::Kind::imported;
    require(imported && found->begin == pointer, cudaErrorInvalidValue);
    if (--found->opened > 0) return;
    const Allocation closed = *found;
    guard_end(closed, false);
    unmap_device_memory(closed.begin);
    std::erase_if(imports(), [&](const Import& import) { return import.begin == closed.begin; });
    forget_allocation(closed.begin);
    end_lazy_access(closed.physical);
  });
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    require(handle != nullptr, cudaErrorInvalidValue);
    const Event& shared = event_of(event);
    require(shared.descriptor >= 0, cudaErrorInvalidResourceHandle);
    write_handle(*handle, kEvent, shared.descriptor, sizeof(SharedEvent), shared.device.physical);
  });
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t from) {
  return call(Needs::working, [&] {
    Process& process = Process::get();
    const std::lock_guard lock(process.mutex);
    require(event != nullptr, cudaErrorInvalidValue);
    const Handle handle = read_handle(from, kEvent);
    const int descriptor = open_file(handle);
    require(descriptor >= 0, cudaErrorInvalidResourceHandle);
    Device* const owner = process.of_physical(handle.physical);
    auto opened = std::make_shared<Event>(owner != nullptr ? *owner : process.current(),
                                          cudaEventDisableTiming | cudaEventInterprocess);
    opened->shared = map_event(descriptor);
    close(descriptor);
    *event = keep_event(std::move(opened));
  });
}
}
