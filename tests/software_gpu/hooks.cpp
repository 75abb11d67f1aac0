#include <cstring>
#include <memory>

#include "tests/software_gpu/errors.hpp"
#include "tests/software_gpu/memory.hpp"
#include "tests/software_gpu/process.hpp"
#include "tests/software_gpu/protection.hpp"
#include "tests/software_gpu/software_gpu.hpp"
#include "tests/software_gpu/stream.hpp"

using namespace polyring::software_gpu;

extern "C" {

cudaError_t polyring_software_gpu_enqueue(cudaStream_t stream, void (*run)(void*), void (*destroy)(void*),
                                          void* context) {
  const std::shared_ptr<void> kept(context, destroy);
  return call(Needs::working, [&] {
    const std::lock_guard lock(Process::get().mutex);
    submit(stream_of(stream),
           {.what = "operation of another library", .run = [run, kept] { run(kept.get()); }});
  });
}

void polyring_software_gpu_allow(void) {
  Process::get();
  allow(kAllDevices);
}

void polyring_software_gpu_forbid(void) { forbid(); }

int polyring_software_gpu_device_of(const void* pointer) {
  const std::lock_guard lock(Process::get().mutex);
  const Allocation* const found = find_allocation(pointer);
  return found != nullptr && found->on_device() ? found->device->ordinal : -1;
}

size_t polyring_software_gpu_bytes_at(const void* pointer) {
  const std::lock_guard lock(Process::get().mutex);
  const Allocation* const found = find_allocation(pointer);
  if (found == nullptr || !found->on_device()) return 0;
  return static_cast<size_t>(found->begin + found->bytes - static_cast<const std::byte*>(pointer));
}

int polyring_software_gpu_device_of_stream(cudaStream_t stream) {
  try {
    const std::lock_guard lock(Process::get().mutex);
    return stream_of(stream).device.ordinal;
  } catch (const Failure&) {
    return -1;
  }
}

cudaError_t polyring_software_gpu_error(int device) {
  try {
    return Process::get().device(device).error();
  } catch (const Failure& failure) {
    return failure.code;
  }
}

const char* polyring_software_gpu_protection(void) {
  Process::get();
  return protection_name();
}

const char* polyring_software_gpu_plan_line(const char* word, int index) {
  const std::size_t length = std::strlen(word);
  for (const std::string& line : Process::get().plan.others) {
    if (line.compare(0, length, word) != 0 || line[length] != ' ') continue;
    if (index-- == 0) return line.c_str() + length + 1;
  }
  return nullptr;
}
}
