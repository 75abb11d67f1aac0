// Kernels: registered by the program that holds them, run by their bodies that were compiled for the host.
#include <cuda_runtime_api.h>
#include <sched.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "tests/software_gpu/bodies.hpp"
#include "tests/software_gpu/errors.hpp"
#include "tests/software_gpu/process.hpp"
#include "tests/software_gpu/protection.hpp"
#include "tests/software_gpu/stream.hpp"

namespace polyring::software_gpu {
namespace {

struct Kernel {
  std::string name;
  const void* stub;  // the function of the host that stands for it
};

// Programs register their kernels before main(), and threads launch them at the same time.
struct Kernels {
  std::mutex mutex;
  std::map<const void*, Kernel> by_stub;
};

Kernels& kernels() {
  static auto* const registered = new Kernels;
  return *registered;
}

struct Configuration {
  dim3 grid, block;
  std::size_t shared_bytes;
  cudaStream_t stream;
};
thread_local std::vector<Configuration> configurations;

const Kernel* kernel_of(const void* stub) {
  const std::lock_guard lock(kernels().mutex);
  const auto found = kernels().by_stub.find(stub);
  return found == kernels().by_stub.end() ? nullptr : &found->second;
}

const Kernel& known_kernel(const void* stub) {
  const Kernel* const kernel = kernel_of(stub);
  require(kernel != nullptr, cudaErrorInvalidDeviceFunction);
  return *kernel;
}

void check_code_exists(const Device& device) {
  const int capability = device.plan.capability_major * 10 + device.plan.capability_minor;
  require(capability >= Process::get().plan.oldest_capability, cudaErrorNoKernelImageForDevice);
}

LaunchShape shape_of(const Kernel& kernel, dim3 grid, dim3 block) {
  const bool valid = grid.x > 0 && grid.y > 0 && grid.z > 0 && block.x > 0 && block.y > 0 && block.z > 0;
  require(valid && block.x <= 1024 && grid.x <= 0x7fffffffu, cudaErrorInvalidConfiguration);
  if (grid.y != 1 || grid.z != 1 || block.y != 1 || block.z != 1)
    fail_loudly(kernel.name +
                " is launched with a grid of more than one dimension, which is not implemented");
  return {grid.x, block.x};
}

/// A kernel that waits for others. There may be many more of them than cores: so that those that they wait
/// for get on, they soon sleep.
struct Waiting {
  const Device& device;
  int turns = 0;
};

/// Between two looks of a kernel at a word that it waits for. A kernel does not outlive its device.
void pause_kernel(void* context) {
  constexpr int kYields = 8;
  constexpr std::chrono::microseconds kSleep{20};
  auto& waiting = *static_cast<Waiting*>(context);
  const cudaError_t error = waiting.device.error();
  require(error == cudaSuccess, error);
  if (++waiting.turns > kYields) {
    std::this_thread::sleep_for(kSleep);
  } else {
    sched_yield();
  }
}

void run_kernel(const HostKernel& body, const std::vector<std::byte>& arguments, LaunchShape shape,
                Device& device) {
  Waiting waiting{device};
  const HostPause pause{pause_kernel, &waiting};
  const auto touched =
      touches_other_memory(device.reach(), [&] { body.run(arguments.data(), shape, pause); });
  if (!touched) return;
  char address[32];
  std::snprintf(address, sizeof address, "0x%zx", static_cast<std::size_t>(*touched));
  say(std::string("the kernel ") + body.name + " on device " + std::to_string(device.physical) + " touched " +
      address + ", which is no memory that it may reach");
  throw Failure{cudaErrorIllegalAddress};
}

void launch(const Kernel& kernel, const Configuration& with, void** parameters) {
  const HostKernel* const body = find_body(kernel.name);
  if (body == nullptr)
    fail_loudly("the kernel " + kernel.name + " has no body that was compiled for the host");
  const std::lock_guard lock(Process::get().mutex);
  Stream& stream = stream_of(with.stream);
  require(&stream.device == &Process::get().current(), cudaErrorInvalidResourceHandle);
  const LaunchShape shape = shape_of(kernel, with.grid, with.block);
  check_code_exists(stream.device);
  std::vector<std::byte> arguments(body->argument_bytes);
  std::memcpy(arguments.data(), parameters[0], arguments.size());
  submit(stream, {.what = body->name,
                  .run = [body, arguments = std::move(arguments), shape, &device = stream.device] {
                    run_kernel(*body, arguments, shape, device);
                  }});
}

int blocks_at_once(int threads) {
  constexpr int kWarp = 32, kThreads = 2048, kBlocks = 32;
  require(threads > 0 && threads <= 1024, cudaErrorInvalidValue);
  const int rounded = (threads + kWarp - 1) / kWarp * kWarp;
  return std::min(kThreads / rounded, kBlocks);
}

[[noreturn]] void refuse_variable(const char* name) {
  fail_loudly(std::string("the device variable ") + name + " is not implemented: there are only kernels");
}

}  // namespace
}  // namespace polyring::software_gpu

using namespace polyring::software_gpu;

extern "C" {

void** __cudaRegisterFatBinary(void* binary) {
  auto* const handle = new void*;
  *handle = binary;
  return handle;
}

void __cudaRegisterFatBinaryEnd(void**) {}

void __cudaUnregisterFatBinary(void** handle) { delete handle; }

char __cudaInitModule(void**) { return 1; }

void __cudaRegisterFunction(void**, const char* stub, char*, const char* name, int, uint3*, uint3*, dim3*,
                            dim3*, int*) {
  const std::lock_guard lock(kernels().mutex);
  kernels().by_stub.insert_or_assign(stub, Kernel{name, stub});
}

void __cudaRegisterVar(void**, char*, char*, const char* name, int, size_t, int, int) {
  refuse_variable(name);
}
void __cudaRegisterManagedVar(void**, void**, char*, const char* name, int, size_t, int, int) {
  refuse_variable(name);
}

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, CUstream_st* stream) {
  configurations.push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
  return call(Needs::nothing, [&] {
    require(!configurations.empty(), cudaErrorInvalidConfiguration);
    const Configuration& last = configurations.back();
    *grid = last.grid;
    *block = last.block;
    *shared_bytes = last.shared_bytes;
    *static_cast<cudaStream_t*>(stream) = last.stream;
    configurations.pop_back();
  });
}

cudaError_t cudaLaunchKernel(const void* stub, dim3 grid, dim3 block, void** parameters, size_t shared_bytes,
                             cudaStream_t stream) {
  return call(Needs::working, [&] {
    launch(known_kernel(stub), {grid, block, shared_bytes, stream}, parameters);
  });
}

// A cudaKernel_t is the address of the kernel's stub.
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* stub) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(stub));
  return cudaSuccess;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** parameters,
                               size_t shared_bytes, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, parameters, shared_bytes, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* configuration, const void* stub,
                                void** parameters) {
  if (configuration->numAttrs != 0) fail_loudly("cudaLaunchKernelExC with attributes is not implemented");
  return cudaLaunchKernel(stub, configuration->gridDim, configuration->blockDim, parameters,
                          configuration->dynamicSmemBytes, configuration->stream);
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* stub) {
  return call(Needs::working, [&] {
    require(attributes != nullptr, cudaErrorInvalidValue);
    known_kernel(stub);
    const Device& device = Process::get().current();
    check_code_exists(device);
    *attributes = {};
    attributes->maxThreadsPerBlock = 1024;
    attributes->numRegs = 32;
    attributes->binaryVersion = device.plan.capability_major * 10 + device.plan.capability_minor;
    attributes->ptxVersion = attributes->binaryVersion;
    attributes->maxDynamicSharedSizeBytes = 48 * 1024;
    attributes->preferredShmemCarveout = -1;
  });
}

cudaError_t cudaFuncSetAttribute(const void* stub, cudaFuncAttribute, int) {
  return call(Needs::working, [&] { known_kernel(stub); });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* stub, int threads,
                                                                   size_t, unsigned) {
  return call(Needs::working, [&] {
    require(blocks != nullptr, cudaErrorInvalidValue);
    known_kernel(stub);
    check_code_exists(Process::get().current());
    *blocks = blocks_at_once(threads);
  });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* stub, int threads,
                                                          size_t bytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, stub, threads, bytes,
                                                                cudaOccupancyDefault);
}
}
