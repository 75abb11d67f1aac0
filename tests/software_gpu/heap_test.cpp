// What AddressSanitizer knows of the memory that the plug-in keeps. Named so that it runs before this process
// uses CUDA, since children do.
#include "base/poison.hpp"
#include "collectives/cuda/memory.hpp"
#include "tests/software_gpu/scenario.hpp"

#ifdef POLYRING_POISON
namespace polyring::cuda {
namespace {

using namespace software_gpu;

bool is_usable(const std::byte* at) { return __asan_address_is_poisoned(at) == 0; }

std::byte* use_and_give_back(DeviceHeap& heap, Bytes size) {
  const Memory memory = heap.allocate(size);
  OK(cudaMemset(memory.get(), 1, size.value));
  OK(cudaDeviceSynchronize());
  CHECK(is_usable(memory.get() + size.value - 1) && !is_usable(memory.get() + size.value));
  return memory.get();
}

void keeps_memory() {
  DeviceHeap heap(0);
  const std::byte* const first = use_and_give_back(heap, Bytes{1000});
  CHECK(!is_usable(first) && !is_usable(first + 999));
  CHECK(use_and_give_back(heap, Bytes{1010}) == first);
}

void frees_memory() {
  DeviceHeap heap(0);
  const std::byte* const first = use_and_give_back(heap, Bytes{40000000});
  CHECK(use_and_give_back(heap, Bytes{50000000}) == first);
}

TEST(HeapDeathTest, WhatIsNotInUseMayNotBeTouched) { EXPECT_GOES_WELL("", keeps_memory); }
TEST(HeapDeathTest, WhatTakesThePlaceOfFreedMemoryMay) {
  EXPECT_GOES_WELL("device * memory 64MiB", frees_memory);
}

}  // namespace
}  // namespace polyring::cuda
#endif
