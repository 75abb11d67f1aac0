#include "collectives/cuda/devices.hpp"

#include <cuda_runtime_api.h>
#include <fmt/ranges.h>

#include <array>
#include <span>

#include "base/error.hpp"
#include "collectives/cuda/check.hpp"
#include "collectives/cuda/memory.hpp"

namespace polyring::cuda {
namespace {

std::string version_text(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

/// Distinguishes what CUDA reports by one error.
[[noreturn]] void no_driver() {
  int driver = 0;
  cudaDriverGetVersion(&driver);
  cudaGetLastError();
  if (driver == 0) {
    throw Error(ExitCode::not_available,
                "no NVIDIA driver is loaded here; run this on a host with GPUs, or see what nvidia-smi says");
  }
  throw Error(ExitCode::not_available,
              fmt::format("the NVIDIA driver is for CUDA up to {}, and this build needs {}; install a newer "
                          "driver, or build with an older CUDA",
                          version_text(driver), runtime_version()));
}

GpuDevice gpu_at(int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device),
        fmt::format("ask GPU {} what it is (cudaGetDeviceProperties)", device));
  std::array<char, 32> pci{};
  check(cudaDeviceGetPCIBusId(pci.data(), pci.size(), device),
        fmt::format("ask GPU {} where it is (cudaDeviceGetPCIBusId)", device));
  const std::span<const unsigned char, sizeof properties.uuid.bytes> id(
      reinterpret_cast<const unsigned char*>(properties.uuid.bytes), sizeof properties.uuid.bytes);
  return {.index = device,
          .id = fmt::format("{:02x}", fmt::join(id, "")),
          .name = properties.name,
          .pci = pci.data(),
          .major = properties.major,
          .minor = properties.minor,
          .memory = Bytes{properties.totalGlobalMem}};
}

}  // namespace

std::string runtime_version() {
  int version = 0;
  check(cudaRuntimeGetVersion(&version), "say its version (cudaRuntimeGetVersion)");
  return version_text(version);
}

std::vector<GpuDevice> gpus() {
  int count = 0;
  const cudaError_t result = cudaGetDeviceCount(&count);
  if (result == cudaErrorInsufficientDriver) no_driver();
  if (result == cudaErrorNoDevice || (result == cudaSuccess && count == 0)) {
    cudaGetLastError();
    throw Error(
        ExitCode::not_available,
        "no GPU can be seen here; see what nvidia-smi says, and whether CUDA_VISIBLE_DEVICES hides it");
  }
  check(result, "count the GPUs (cudaGetDeviceCount)");
  std::vector<GpuDevice> found;
  for (int device = 0; device < count; ++device) found.push_back(gpu_at(device));
  return found;
}

std::string name_of(int device) { return gpu_at(device).name; }

int multiprocessors(int device) {
  int number = 0;
  check(cudaDeviceGetAttribute(&number, cudaDevAttrMultiProcessorCount, device),
        "count multiprocessors (cudaDeviceGetAttribute)");
  return number;
}

Bytes free_memory(int device) {
  std::size_t free = 0;
  std::size_t all = 0;
  check(cudaSetDevice(device), "use a GPU (cudaSetDevice)");
  check(cudaMemGetInfo(&free, &all), "ask for free memory (cudaMemGetInfo)");
  return Bytes{free} + DeviceHeap::of(device).spare();
}

}  // namespace polyring::cuda
