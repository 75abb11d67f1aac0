#include "tests/software_gpu/conformance/kernels.hpp"

#include "collectives/cuda/kernel_table.hpp"

namespace polyring::software_gpu {
namespace {

void add(const void* arguments, LaunchShape shape, const HostPause&) {
  const auto& typed = *static_cast<const AddArguments*>(arguments);
  const unsigned step = shape.blocks * shape.threads;
  for (unsigned index = 0; index < step; ++index) add_body(typed, index, step);
}

void wait(const void* arguments, LaunchShape, const HostPause& pause) {
  const auto* const word = const_cast<const unsigned*>(static_cast<const WaitArguments*>(arguments)->word);
  while (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0) pause();
}

constexpr HostKernel kKernels[] = {
    {"polyring_conformance_add", sizeof(AddArguments), add},
    {"polyring_conformance_wait", sizeof(WaitArguments), wait},
};

}  // namespace

const HostKernel* conformance_kernel(std::string_view name) {
  for (const HostKernel& kernel : kKernels)
    if (kernel.name == name) return &kernel;
  return nullptr;
}

}  // namespace polyring::software_gpu
