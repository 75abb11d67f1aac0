#include "collectives/cuda/kernel_table.hpp"

#include <algorithm>
#include <vector>

#include "collectives/cuda/kernel_list.hpp"

namespace polyring {
namespace {

template <typename Body, int kPhase = 0>
void run_phases(const typename Body::Arguments& arguments, LaunchShape shape,
                std::vector<typename Body::State>& states, const HostPause& pause) {
  for (std::uint32_t block = 0; block < shape.blocks; ++block) {
    for (std::uint32_t thread = 0; thread < shape.threads; ++thread) {
      Body::template run<kPhase>(arguments, {block, shape.blocks, thread, shape.threads}, states[block],
                                 pause);
    }
  }
  if constexpr (kPhase + 1 < Body::kPhases) run_phases<Body, kPhase + 1>(arguments, shape, states, pause);
}

template <typename Body>
void run_body(const void* arguments, LaunchShape shape, const HostPause& pause) {
  std::vector<typename Body::State> states(shape.blocks);
  run_phases<Body>(*static_cast<const typename Body::Arguments*>(arguments), shape, states, pause);
}

template <typename Body>
constexpr HostKernel host_kernel(const char* name) {
  return {name, sizeof(typename Body::Arguments), run_body<Body>};
}

#define POLYRING_TEXT(name) #name
#define POLYRING_NAME_TEXT(name) POLYRING_TEXT(name)
#define POLYRING_REDUCTION_ROW(op, from, to)          \
  host_kernel<POLYRING_REDUCTION_BODY(op, from, to)>( \
      POLYRING_NAME_TEXT(POLYRING_REDUCTION_NAME(op, from, to))),
#define POLYRING_OTHER_ROW(name, ...) host_kernel<__VA_ARGS__>(POLYRING_NAME_TEXT(POLYRING_OTHER_NAME(name))),

constexpr HostKernel kHostKernels[] = {POLYRING_REDUCTIONS(POLYRING_REDUCTION_ROW)
                                           POLYRING_OTHERS(POLYRING_OTHER_ROW)};

}  // namespace

std::span<const HostKernel> host_kernels() { return kHostKernels; }

const HostKernel* find_host_kernel(std::string_view name) {
  const auto* const found =
      std::ranges::find_if(kHostKernels, [&](const HostKernel& kernel) { return kernel.name == name; });
  return found == std::end(kHostKernels) ? nullptr : found;
}

}  // namespace polyring
