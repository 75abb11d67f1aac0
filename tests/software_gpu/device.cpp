#include "tests/software_gpu/device.hpp"

#include <cstdio>
#include <cstring>

namespace polyring::software_gpu {

void Device::fail(cudaError_t code) {
  cudaError_t none = cudaSuccess;
  error_.compare_exchange_strong(none, code);
}

std::optional<Fault> Device::fault_at(bool allocation, std::uint64_t number, std::size_t bytes) const {
  for (const Fault& fault : whole_plan_.faults) {
    if ((fault.kind == Fault::Kind::failed_allocation) != allocation) continue;
    if (fault.device >= 0 && fault.device != physical) continue;
    if (fault.at == number || (fault.above > 0 && bytes > fault.above)) return fault;
  }
  return std::nullopt;
}

std::optional<Fault> Device::next_operation() { return fault_at(false, ++operations_, 0); }

std::optional<Fault> Device::next_allocation(std::size_t bytes) {
  return fault_at(true, ++allocations_, bytes);
}

cudaUUID_t uuid_of(const Plan& plan, int physical) {
  const DevicePlan& device = plan.devices[static_cast<std::size_t>(physical)];
  cudaUUID_t uuid{};
  std::memcpy(uuid.bytes, "polyring", 8);
  uuid.bytes[12] = static_cast<char>(device.pci_domain);
  uuid.bytes[13] = static_cast<char>(device.pci_bus);
  uuid.bytes[14] = static_cast<char>(device.pci_device);
  uuid.bytes[15] = static_cast<char>(physical);
  return uuid;
}

std::string uuid_text(const Plan& plan, int physical) {
  const cudaUUID_t uuid = uuid_of(plan, physical);
  std::string text = plan.devices[static_cast<std::size_t>(physical)].mig.empty() ? "GPU" : "MIG";
  for (std::size_t index = 0; index < sizeof uuid.bytes; ++index) {
    char digits[4];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(uuid.bytes[index]));
    if (index == 0 || index == 4 || index == 6 || index == 8 || index == 10) text += '-';
    text += digits;
  }
  return text;
}

}  // namespace polyring::software_gpu
