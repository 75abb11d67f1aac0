// Calls of the API on devices and on the runtime itself.
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>

#include "tests/software_gpu/errors.hpp"
#include "tests/software_gpu/memory.hpp"
#include "tests/software_gpu/process.hpp"

namespace polyring::software_gpu {
namespace {

std::string name_of(const DevicePlan& plan) {
  return plan.mig.empty() ? plan.name : plan.name + " MIG " + plan.mig;
}

std::string pci_address(const DevicePlan& plan) {
  char text[32];
  std::snprintf(text, sizeof text, "%04X:%02X:%02X.0", static_cast<unsigned>(plan.pci_domain),
                static_cast<unsigned>(plan.pci_bus), static_cast<unsigned>(plan.pci_device));
  return text;
}

struct Attribute {
  cudaDeviceAttr attribute;
  int value;
};

/// What is the same for all devices.
constexpr Attribute kConstant[] = {
    {cudaDevAttrMaxThreadsPerBlock, 1024},
    {cudaDevAttrMaxBlockDimX, 1024},
    {cudaDevAttrMaxBlockDimY, 1024},
    {cudaDevAttrMaxBlockDimZ, 64},
    {cudaDevAttrMaxGridDimX, 0x7fffffff},
    {cudaDevAttrMaxGridDimY, 65535},
    {cudaDevAttrMaxGridDimZ, 65535},
    {cudaDevAttrMaxSharedMemoryPerBlock, 48 * 1024},
    {cudaDevAttrWarpSize, 32},
    {cudaDevAttrAsyncEngineCount, 3},
    {cudaDevAttrConcurrentKernels, 1},
    {cudaDevAttrEccEnabled, 1},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrCanMapHostMemory, 1},
    {cudaDevAttrIntegrated, 0},
    {cudaDevAttrComputeMode, cudaComputeModeDefault},
    {cudaDevAttrStreamPrioritiesSupported, 1},
    {cudaDevAttrMaxThreadsPerMultiProcessor, 2048},
    {cudaDevAttrMaxBlocksPerMultiprocessor, 32},
    {cudaDevAttrManagedMemory, 0},
    {cudaDevAttrPageableMemoryAccess, 0},
    {cudaDevAttrConcurrentManagedAccess, 0},
    {cudaDevAttrCooperativeLaunch, 1},
    {cudaDevAttrCanUseHostPointerForRegisteredMem, 1},
    {cudaDevAttrHostRegisterSupported, 1},
    {cudaDevAttrMemoryPoolsSupported, 1},
    {cudaDevAttrGPUDirectRDMASupported, 0},
    {cudaDevAttrHostNativeAtomicSupported, 0},
    {cudaDevAttrIpcEventSupport, 1},
};

int attribute_of(const Device& device, cudaDeviceAttr attribute) {
  const DevicePlan& plan = device.plan;
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      return plan.multiprocessors;
    case cudaDevAttrComputeCapabilityMajor:
      return plan.capability_major;
    case cudaDevAttrComputeCapabilityMinor:
      return plan.capability_minor;
    case cudaDevAttrPciDomainId:
      return plan.pci_domain;
    case cudaDevAttrPciBusId:
      return plan.pci_bus;
    case cudaDevAttrPciDeviceId:
      return plan.pci_device;
    default:
      break;
  }
  for (const Attribute& row : kConstant)
    if (row.attribute == attribute) return row.value;
  fail_loudly("the device attribute " + std::to_string(attribute) + " is not implemented");
}

void fill(cudaDeviceProp& properties, const Device& device) {
  const DevicePlan& plan = device.plan;
  properties = {};
  std::snprintf(properties.name, sizeof properties.name, "%s", name_of(plan).c_str());
  properties.uuid = uuid_of(Process::get().plan, device.physical);
  properties.totalGlobalMem = plan.memory;
  properties.sharedMemPerBlock = 48 * 1024;
  properties.regsPerBlock = 65536;
  properties.warpSize = 32;
  properties.maxThreadsPerBlock = 1024;
  properties.maxThreadsDim[0] = properties.maxThreadsDim[1] = 1024;
  properties.maxThreadsDim[2] = 64;
  properties.maxGridSize[0] = 0x7fffffff;
  properties.maxGridSize[1] = properties.maxGridSize[2] = 65535;
  properties.major = plan.capability_major;
  properties.minor = plan.capability_minor;
  properties.multiProcessorCount = plan.multiprocessors;
  properties.canMapHostMemory = 1;
  properties.concurrentKernels = 1;
  properties.ECCEnabled = 1;
  properties.pciDomainID = plan.pci_domain;
  properties.pciBusID = plan.pci_bus;
  properties.pciDeviceID = plan.pci_device;
  properties.asyncEngineCount = 3;
  properties.unifiedAddressing = 1;
  properties.maxThreadsPerMultiProcessor = 2048;
  properties.maxBlocksPerMultiProcessor = 32;
  properties.streamPrioritiesSupported = 1;
  properties.hostRegisterSupported = 1;
  properties.canUseHostPointerForRegisteredMem = 1;
  properties.cooperativeLaunch = 1;
  properties.memoryPoolsSupported = 1;
  properties.ipcEventSupported = 1;
}

/// Whether this device may ever reach the memory of another.
bool can_be_peers(const Device& device, const Device& peer) {
  return &device != &peer && device.is_peer(peer.physical);
}

}  // namespace
}  // namespace polyring::software_gpu

using namespace polyring::software_gpu;

extern "C" {

cudaError_t cudaRuntimeGetVersion(int* version) {
  return call(Needs::nothing, [&] {
    require(version != nullptr, cudaErrorInvalidValue);
    *version = CUDART_VERSION;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  return call(Needs::nothing, [&] {
    require(version != nullptr, cudaErrorInvalidValue);
    *version = Process::get().plan.driver_version;
  });
}

cudaError_t cudaGetDeviceCount(int* count) {
  if (count != nullptr) *count = 0;
  return call(Needs::devices, [&] {
    require(count != nullptr, cudaErrorInvalidValue);
    *count = Process::get().device_count();
  });
}

cudaError_t cudaSetDevice(int ordinal) {
  return call(Needs::devices, [&] {
    const Device& device = Process::get().device(ordinal);
    Process::set_current(ordinal);
    require(device.error() == cudaSuccess, device.error());
  });
}

cudaError_t cudaInitDevice(int ordinal, unsigned, unsigned) {
  return call(Needs::devices, [&] { Process::get().device(ordinal); });
}

cudaError_t cudaGetDevice(int* ordinal) {
  return call(Needs::devices, [&] {
    require(ordinal != nullptr, cudaErrorInvalidValue);
    *ordinal = Process::current_ordinal();
  });
}

cudaError_t cudaSetDeviceFlags(unsigned) {
  return call(Needs::devices, [] {});
}

cudaError_t cudaGetDeviceFlags(unsigned* flags) {
  return call(Needs::devices, [&] {
    require(flags != nullptr, cudaErrorInvalidValue);
    *flags = cudaDeviceScheduleAuto | cudaDeviceMapHost;
  });
}

cudaError_t cudaDeviceReset(void) {
  return call(Needs::devices, [] {
    say("cudaDeviceReset is refused: it would take the device from all threads of the process");
    throw Failure{cudaErrorNotSupported};
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int ordinal) {
  return call(Needs::devices, [&] {
    require(properties != nullptr, cudaErrorInvalidValue);
    fill(*properties, Process::get().device(ordinal));
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int ordinal) {
  return call(Needs::devices, [&] {
    require(value != nullptr, cudaErrorInvalidValue);
    *value = attribute_of(Process::get().device(ordinal), attribute);
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int bytes, int ordinal) {
  return call(Needs::devices, [&] {
    const std::string address = pci_address(Process::get().device(ordinal).plan);
    require(text != nullptr && bytes > static_cast<int>(address.size()), cudaErrorInvalidValue);
    std::memcpy(text, address.c_str(), address.size() + 1);
  });
}

cudaError_t cudaDeviceGetByPCIBusId(int* ordinal, const char* text) {
  return call(Needs::devices, [&] {
    const Process& process = Process::get();
    require(ordinal != nullptr && text != nullptr, cudaErrorInvalidValue);
    unsigned domain = 0, bus = 0, slot = 0;
    require(std::sscanf(text, "%x:%x:%x", &domain, &bus, &slot) == 3, cudaErrorInvalidValue);
    for (int index = 0; index < process.device_count(); ++index) {
      const DevicePlan& plan = process.device(index).plan;
      if (plan.pci_domain != static_cast<int>(domain) || plan.pci_bus != static_cast<int>(bus)) continue;
      if (plan.pci_device != static_cast<int>(slot)) continue;
      *ordinal = index;
      return;
    }
    throw Failure{cudaErrorInvalidDevice};
  });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int ordinal, int peer) {
  return call(Needs::devices, [&] {
    const Process& process = Process::get();
    require(can != nullptr, cudaErrorInvalidValue);
    *can = can_be_peers(process.device(ordinal), process.device(peer)) ? 1 : 0;
  });
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int ordinal, int peer) {
  return call(Needs::devices, [&] {
    const Process& process = Process::get();
    require(value != nullptr && ordinal != peer, cudaErrorInvalidValue);
    const bool peers = can_be_peers(process.device(ordinal), process.device(peer));
    switch (attribute) {
      case cudaDevP2PAttrPerformanceRank:
        *value = 0;
        return;
      case cudaDevP2PAttrAccessSupported:
      case cudaDevP2PAttrNativeAtomicSupported:
        *value = peers ? 1 : 0;
        return;
      case cudaDevP2PAttrCudaArrayAccessSupported:
        *value = 0;
        return;
      default:
        throw Failure{cudaErrorInvalidValue};
    }
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer_ordinal, unsigned flags) {
  return call(Needs::working, [&] {
    Process& process = Process::get();
    const std::lock_guard lock(process.mutex);
    require(flags == 0, cudaErrorInvalidValue);
    Device& device = process.current();
    const Device& peer = process.device(peer_ordinal);
    require(&device != &peer, cudaErrorInvalidDevice);
    require(can_be_peers(device, peer), cudaErrorPeerAccessUnsupported);
    require((device.enabled_peers & only(peer.physical)) == 0, cudaErrorPeerAccessAlreadyEnabled);
    device.enabled_peers |= only(peer.physical);
    device.extend_reach(peer.physical);
  });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer_ordinal) {
  return call(Needs::working, [&] {
    Process& process = Process::get();
    const std::lock_guard lock(process.mutex);
    Device& device = process.current();
    const Device& peer = process.device(peer_ordinal);
    require((device.enabled_peers & only(peer.physical)) != 0, cudaErrorPeerAccessNotEnabled);
    device.enabled_peers &= ~only(peer.physical);
    if (!has_opened_memory_of(peer.physical)) device.reduce_reach(peer.physical);
  });
}
}
