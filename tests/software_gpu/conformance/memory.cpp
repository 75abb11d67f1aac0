// Questions on allocations and pointers.
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstdlib>

#include "tests/software_gpu/conformance/launches.hpp"
#include "tests/software_gpu/conformance/questions.hpp"
#include "tests/software_gpu/conformance/tools.hpp"

namespace polyring::software_gpu {
namespace {

std::string attributes_of(const void* pointer) {
  cudaPointerAttributes attributes{};
  const cudaError_t code = cudaPointerGetAttributes(&attributes, pointer);
  if (code != cudaSuccess) return named(code);
  const char* const types[] = {"unregistered", "host", "device", "managed"};
  return std::string(types[attributes.type]) + ", device pointer " +
         (attributes.devicePointer == nullptr   ? "none"
          : attributes.devicePointer == pointer ? "same"
                                                : "other") +
         ", host pointer " +
         (attributes.hostPointer == nullptr   ? "none"
          : attributes.hostPointer == pointer ? "same"
                                              : "other");
}

/// Pages of the host that a question may register.
class Pages {
 public:
  Pages() : begin_(std::aligned_alloc(4096, 4 * 4096)) {}
  ~Pages() { std::free(begin_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  char* get() const { return static_cast<char*>(begin_); }

 private:
  void* begin_;
};

std::string register_twice(std::size_t offset) {
  const Pages pages;
  NEED(cudaHostRegister(pages.get(), 2 * 4096, cudaHostRegisterDefault));
  const std::string answer = named(cudaHostRegister(pages.get() + offset, 4096, cudaHostRegisterDefault));
  NEED(cudaHostUnregister(pages.get()));
  return answer;
}

std::string registered_attributes() {
  const Pages pages;
  NEED(cudaHostRegister(pages.get(), 4096, cudaHostRegisterMapped));
  const std::string answer = attributes_of(pages.get());
  NEED(cudaHostUnregister(pages.get()));
  return answer;
}

std::string malloc_of_nothing() {
  void* memory = &memory;
  const std::string answer = named(cudaMalloc(&memory, 0));
  return answer + (memory == nullptr ? ", null" : ", not null");
}

std::string free_twice() {
  void* memory = nullptr;
  NEED(cudaMalloc(&memory, 4));
  NEED(cudaFree(memory));
  return named(cudaFree(memory));
}

std::string kernel_on_pinned() {
  const PinnedWords words(1);
  void* pointer = nullptr;
  NEED(cudaHostGetDevicePointer(&pointer, words.get(), 0));
  auto* const on_device = static_cast<unsigned*>(pointer);
  launch_add({on_device, on_device, 3, 1}, nullptr);
  NEED(cudaDeviceSynchronize());
  return std::to_string(words.get()[0]);
}

std::string in_stream_order() {
  const OwnStream stream;
  const DeviceWords result(1);
  void* memory = nullptr;
  NEED(cudaMallocAsync(&memory, 4, stream));
  NEED(cudaMemsetAsync(memory, 0, 4, stream));
  auto* const words = static_cast<unsigned*>(memory);
  launch_add({words, words, 4, 1}, stream);
  launch_add({result.get(), words, 1, 1}, stream);
  NEED(cudaFreeAsync(memory, stream));
  return std::to_string(result.first());
}

std::string free_of_host_stack() {
  int word = 0;
  return named(cudaFreeHost(&word));
}

const Question kQuestions[] = {
    {"memory.malloc_of_nothing", malloc_of_nothing},
    {"memory.malloc_into_null", [] { return named(cudaMalloc(nullptr, 4)); }},
    {"memory.is_aligned_to_256",
     [] {
       const DeviceWords first(1), second(1);
       const auto both =
           reinterpret_cast<std::uintptr_t>(first.get()) | reinterpret_cast<std::uintptr_t>(second.get());
       return yes_or_no(both % 256 == 0);
     }},
    {"memory.free_null", [] { return named(cudaFree(nullptr)); }},
    {"memory.free_twice", free_twice},
    {"memory.free_inside",
     [] {
       const DeviceWords words(64);
       return named(cudaFree(words.get() + 1));
     }},
    {"memory.free_pinned_as_device",
     [] {
       const PinnedWords words(1);
       return named(cudaFree(words.get()));
     }},
    {"memory.free_host_null", [] { return named(cudaFreeHost(nullptr)); }},
    {"memory.free_host_of_stack", free_of_host_stack},
    {"memory.register_twice", [] { return register_twice(0); }},
    {"memory.register_overlapping", [] { return register_twice(4096); }},
    {"memory.unregister_unknown",
     [] {
       const Pages pages;
       return named(cudaHostUnregister(pages.get()));
     }},
    {"memory.unregister_pinned",
     [] {
       const PinnedWords words(1);
       return named(cudaHostUnregister(words.get()));
     }},
    {"memory.device_pointer_of_pageable",
     [] {
       const Pages pages;
       void* pointer = nullptr;
       return named(cudaHostGetDevicePointer(&pointer, pages.get(), 0));
     }},
    {"memory.kernel_on_pinned", kernel_on_pinned},
    {"memory.attributes_of_device",
     [] {
       const DeviceWords words(4);
       return attributes_of(words.get());
     }},
    {"memory.attributes_inside_device",
     [] {
       const DeviceWords words(4);
       return attributes_of(words.get() + 2);
     }},
    {"memory.attributes_of_pinned",
     [] {
       const PinnedWords words(4);
       return attributes_of(words.get());
     }},
    {"memory.attributes_of_registered", registered_attributes},
    {"memory.attributes_of_pageable",
     [] {
       const Pages pages;
       return attributes_of(pages.get());
     }},
    {"memory.attributes_of_null", [] { return attributes_of(nullptr); }},
    {"memory.in_stream_order", in_stream_order},
};

}  // namespace

std::span<const Question> memory_questions() { return kQuestions; }

}  // namespace polyring::software_gpu
