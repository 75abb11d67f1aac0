#include "tests/software_gpu/bodies.hpp"

#include "tests/software_gpu/conformance/kernels.hpp"

namespace polyring::software_gpu {

const HostKernel* find_body(std::string_view name) {
  const HostKernel* const found = find_host_kernel(name);
  return found != nullptr ? found : conformance_kernel(name);
}

}  // namespace polyring::software_gpu
