// Questions on devices and versions.
#include <cuda_runtime_api.h>

#include "tests/software_gpu/conformance/questions.hpp"
#include "tests/software_gpu/conformance/tools.hpp"

namespace polyring::software_gpu {
namespace {

int device_count() {
  int count = 0;
  NEED(cudaGetDeviceCount(&count));
  return count;
}

std::string properties_agree() {
  cudaDeviceProp properties;
  NEED(cudaGetDeviceProperties(&properties, 0));
  const auto attribute = [](cudaDeviceAttr which) {
    int value = 0;
    NEED(cudaDeviceGetAttribute(&value, which, 0));
    return value;
  };
  return yes_or_no(properties.major == attribute(cudaDevAttrComputeCapabilityMajor) &&
                   properties.minor == attribute(cudaDevAttrComputeCapabilityMinor) &&
                   properties.multiProcessorCount == attribute(cudaDevAttrMultiProcessorCount) &&
                   properties.pciBusID == attribute(cudaDevAttrPciBusId) &&
                   properties.warpSize == attribute(cudaDevAttrWarpSize));
}

std::string pci_address_finds_device() {
  char address[32] = {};
  int found = -1;
  NEED(cudaDeviceGetPCIBusId(address, sizeof address, 0));
  NEED(cudaDeviceGetByPCIBusId(&found, address));
  return yes_or_no(found == 0);
}

/// What another thread has set as its device is its own.
std::string current_in_new_thread() {
  NEED(cudaSetDevice(1));
  int current = -1;
  std::thread([&] { NEED(cudaGetDevice(&current)); }).join();
  NEED(cudaSetDevice(0));
  return std::to_string(current);
}

std::string enable_twice() {
  NEED(cudaDeviceEnablePeerAccess(1, 0));
  const std::string answer = named(cudaDeviceEnablePeerAccess(1, 0));
  NEED(cudaDeviceDisablePeerAccess(1));
  return answer;
}

std::string kernel_reaches_peer() {
  NEED(cudaSetDevice(1));
  const DeviceWords words(1);
  NEED(cudaSetDevice(0));
  NEED(cudaDeviceEnablePeerAccess(1, 0));
  words.add(5, nullptr);
  const unsigned first = words.first();
  NEED(cudaDeviceDisablePeerAccess(1));
  return std::to_string(first);
}

std::string kernel_without_peer_access() {
  NEED(cudaSetDevice(1));
  const DeviceWords words(1);
  NEED(cudaSetDevice(0));
  words.add(5, nullptr);
  return named(cudaDeviceSynchronize());
}

const Question kQuestions[] = {
    {"device.runtime_version_is_of_header",
     [] {
       int version = 0;
       NEED(cudaRuntimeGetVersion(&version));
       return yes_or_no(version / 1000 == CUDART_VERSION / 1000);
     }},
    {"device.set_absent", [] { return named(cudaSetDevice(device_count())); }},
    {"device.set_negative", [] { return named(cudaSetDevice(-1)); }},
    {"device.properties_of_absent",
     [] {
       cudaDeviceProp properties;
       return named(cudaGetDeviceProperties(&properties, device_count()));
     }},
    {"device.properties_are_attributes", properties_agree},
    {"device.pci_address_finds_device", pci_address_finds_device},
    {"device.pci_address_in_short_text",
     [] {
       char text[4];
       return named(cudaDeviceGetPCIBusId(text, sizeof text, 0));
     }},
    {"device.is_its_own_peer",
     [] {
       int can = 7;
       NEED(cudaDeviceCanAccessPeer(&can, 0, 0));
       return std::to_string(can);
     }},
    {"device.enable_itself_as_peer", [] { return named(cudaDeviceEnablePeerAccess(0, 0)); }},
    {"device.enable_absent_peer", [] { return named(cudaDeviceEnablePeerAccess(device_count(), 0)); }},
    {"device.enable_peer_twice", enable_twice, 2},
    {"device.disable_peer_not_enabled", [] { return named(cudaDeviceDisablePeerAccess(1)); }, 2},
    {"device.current_in_new_thread", current_in_new_thread, 2},
    {"device.kernel_reaches_enabled_peer", kernel_reaches_peer, 2},
    {"device.kernel_reaches_other_device", kernel_without_peer_access, 2, true},
};

}  // namespace

std::span<const Question> device_questions() { return kQuestions; }

}  // namespace polyring::software_gpu
