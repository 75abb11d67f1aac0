#include "topology/inventory/probe/nvml_library.hpp"

#include <algorithm>
#include <array>

#include "topology/inventory/probe/nvml_calls.hpp"

namespace polyring::probe {
namespace {

using namespace nvml;

struct Memory {  // nvmlMemory_t
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

union Value {  // nvmlValue_t
  double as_double;
  unsigned as_unsigned;
  unsigned long as_long;
  unsigned long long as_long_long;
};

struct FieldValue {  // nvmlFieldValue_t
  unsigned field;
  unsigned scope;  // the number of the link
  long long timestamp;
  long long latency;
  int value_type;  // nvmlValueType_t
  Return result;
  Value value;
};

// Chapter «Field Value Enums»: NVML_FI_DEV_NVLINK_… and NVML_FI_DEV_C2C_….
constexpr unsigned kNvlinkSpeedCommon = 90;  // MB/s
constexpr unsigned kNvlinkGetSpeed = 164;    // MB/s of one link
constexpr unsigned kNvlinkGetState = 165;
constexpr unsigned kNvlinkGetVersion = 166;
constexpr unsigned kC2cLinkCount = 170;
constexpr unsigned kC2cGetStatus = 171;
constexpr unsigned kC2cGetMaxBandwidth = 172;  // MB/s of one link

constexpr int kClockMemory = 2;    // NVML_CLOCK_MEM
constexpr int kPeerByRead = 0;     // NVML_P2P_CAPS_INDEX_READ
constexpr int kPeerByNvlink = 2;   // NVML_P2P_CAPS_INDEX_NVLINK
constexpr unsigned kIbm = 0x1014;  // whose NPU is the POWER processor's end of an NVLink

class Nvml {
 public:
  Nvml(const std::string& library, NvmlReport& report) : calls_(library, report), report_(report) {}

  bool loaded() const { return calls_.loaded(); }
  void read_all();

 private:
  template <typename... Args>
  Return call(const char* name, Args... args) {
    return calls_.call(name, args...);
  }

  /// Sets the number to a field's value; false when this GPU or driver has none.
  bool field(Device device, unsigned id, unsigned scope, unsigned& number);
  void read_gpu(Device device, NvmlGpu& gpu);
  void read_links(Device device, NvmlGpu& gpu);
  void read_remote(Device device, unsigned number, NvmlLink& link);
  void read_c2c(Device device, NvmlGpu& gpu);
  void read_health(Device device, NvmlGpu& gpu);

  Calls calls_;
  NvmlReport& report_;
};

bool Nvml::field(Device device, unsigned id, unsigned scope, unsigned& number) {
  FieldValue value{};
  value.field = id;
  value.scope = scope;
  if (call("nvmlDeviceGetFieldValues", device, 1, &value) != kSuccess || value.result != kSuccess)
    return false;
  switch (value.value_type) {
    case 1:  // NVML_VALUE_TYPE_UNSIGNED_INT
    case 5:  // NVML_VALUE_TYPE_SIGNED_INT
      number = value.value.as_unsigned;
      return true;
    case 2:  // NVML_VALUE_TYPE_UNSIGNED_LONG
      number = static_cast<unsigned>(value.value.as_long);
      return true;
    case 3:  // NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
      number = static_cast<unsigned>(value.value.as_long_long);
      return true;
    default:
      return false;
  }
}

void Nvml::read_remote(Device device, unsigned number, NvmlLink& link) {
  unsigned type = static_cast<unsigned>(NvmlRemote::unknown);
  const bool typed = call("nvmlDeviceGetNvLinkRemoteDeviceType", device, number, &type) == kSuccess;
  PciInfo pci{};
  if (call("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, number, &pci) == kSuccess) {
    copy_text(link.remote_pci, address_of(pci));
    // Drivers before 470 do not say the type; POWER processors tell by their vendor.
    if (!typed && (pci.device_and_vendor & 0xffff) == kIbm) type = static_cast<unsigned>(NvmlRemote::npu);
  }
  link.remote = type <= 2 ? static_cast<NvmlRemote>(type) : NvmlRemote::unknown;
}

void Nvml::read_links(Device device, NvmlGpu& gpu) {
  unsigned common = 0;
  field(device, kNvlinkSpeedCommon, 0, common);
  for (unsigned number = 0; number < kMostNvmlLinks; ++number) {
    NvmlLink& link = gpu.links[number];
    // Hopper and newer answer to the field, older ones to the function. 1 is active, 2 asleep until it is
    // needed.
    unsigned state = 0;
    if (!field(device, kNvlinkGetState, number, state) &&
        call("nvmlDeviceGetNvLinkState", device, number, &state) != kSuccess)
      continue;
    link.present = true;
    link.active = state != 0;
    if (!link.active) continue;
    if (!field(device, kNvlinkGetVersion, number, link.version))
      call("nvmlDeviceGetNvLinkVersion", device, number, &link.version);
    if (!field(device, kNvlinkGetSpeed, number, link.megabytes_per_second))
      link.megabytes_per_second = common;
    read_remote(device, number, link);
  }
}

void Nvml::read_c2c(Device device, NvmlGpu& gpu) {
  unsigned count = 0;
  if (!field(device, kC2cLinkCount, 0, count)) return;
  for (unsigned number = 0; number < std::min(count, 64u); ++number) {
    unsigned active = 0;
    unsigned speed = 0;
    if (!field(device, kC2cGetStatus, number, active) || active != 1) continue;
    if (!field(device, kC2cGetMaxBandwidth, number, speed)) continue;
    ++gpu.c2c_links;
    gpu.c2c_megabytes_per_second = speed;
  }
}

void Nvml::read_health(Device device, NvmlGpu& gpu) {
  unsigned long long reasons = 0;
  constexpr const char* kReasons = "nvmlDeviceGetCurrentClocksEventReasons";
  constexpr const char* kBefore535 = "nvmlDeviceGetCurrentClocksThrottleReasons";
  gpu.clock_reasons_known = call(calls_.has(kReasons) ? kReasons : kBefore535, device, &reasons) == kSuccess;
  gpu.clock_reasons = reasons;
  unsigned long long errors = 0;
  if (call("nvmlDeviceGetTotalEccErrors", device, kErrorUncorrected, kSinceDriverLoaded, &errors) == kSuccess)
    gpu.uncorrected_errors = errors;
  int current = 0;
  int pending = 0;
  if (call("nvmlDeviceGetEccMode", device, &current, &pending) == kSuccess)
    gpu.ecc_change_pending = current != pending;
  if (call("nvmlDeviceGetRetiredPagesPendingStatus", device, &pending) == kSuccess)
    gpu.retired_pages_pending = pending == 1;
  unsigned corrected = 0;
  unsigned uncorrected = 0;
  unsigned waiting = 0;
  unsigned failed = 0;
  if (call("nvmlDeviceGetRemappedRows", device, &corrected, &uncorrected, &waiting, &failed) == kSuccess) {
    gpu.row_remap_pending = waiting != 0;
    gpu.row_remap_failed = failed != 0;
  }
  unsigned mode = 0;
  unsigned next = 0;
  if (call("nvmlDeviceGetMigMode", device, &mode, &next) == kSuccess) gpu.mig = mode == 1;
}

void Nvml::read_gpu(Device device, NvmlGpu& gpu) {
  call("nvmlDeviceGetName", device, gpu.name.data(), static_cast<unsigned>(gpu.name.size()));
  PciInfo pci{};
  if (call("nvmlDeviceGetPciInfo_v3", device, &pci) == kSuccess) copy_text(gpu.pci, address_of(pci));
  Memory memory{};
  if (call("nvmlDeviceGetMemoryInfo", device, &memory) == kSuccess) gpu.memory_bytes = memory.total;
  call("nvmlDeviceGetMemoryBusWidth", device, &gpu.memory_bus_bits);
  call("nvmlDeviceGetMaxClockInfo", device, kClockMemory, &gpu.memory_megahertz);
  read_links(device, gpu);
  read_c2c(device, gpu);
  read_health(device, gpu);
}

void Nvml::read_all() {
  report_.init = call("nvmlInit_v2");
  if (report_.init != kSuccess) return;
  call("nvmlSystemGetDriverVersion", report_.driver.data(), static_cast<unsigned>(report_.driver.size()));
  unsigned count = 0;
  call("nvmlDeviceGetCount_v2", &count);
  report_.listed = static_cast<int>(std::min<unsigned>(count, kMostNvmlGpus));
  std::array<Device, kMostNvmlGpus> devices{};
  for (unsigned i = 0; i < static_cast<unsigned>(report_.listed); ++i) {
    NvmlGpu& gpu = report_.gpus[i];
    gpu.peer_read.fill(kPeerUnknown);
    gpu.peer_nvlink.fill(kPeerUnknown);
    gpu.error = call("nvmlDeviceGetHandleByIndex_v2", i, &devices[i]);
    gpu.read = gpu.error == kSuccess;
    if (gpu.read) read_gpu(devices[i], gpu);
    report_.gpu_count = static_cast<int>(i) + 1;
  }
  for (std::size_t a = 0; a < static_cast<std::size_t>(report_.listed); ++a) {
    for (std::size_t b = 0; b < static_cast<std::size_t>(report_.listed); ++b) {
      NvmlGpu& gpu = report_.gpus[a];
      if (a == b || !gpu.read || !report_.gpus[b].read) continue;
      int status = kPeerUnknown;
      if (call("nvmlDeviceGetP2PStatus", devices[a], devices[b], kPeerByRead, &status) == kSuccess)
        gpu.peer_read[b] = static_cast<unsigned char>(status);
      if (call("nvmlDeviceGetP2PStatus", devices[a], devices[b], kPeerByNvlink, &status) == kSuccess)
        gpu.peer_nvlink[b] = static_cast<unsigned char>(status);
    }
  }
  call("nvmlShutdown");
}

}  // namespace

void fill_nvml_report(const std::string& library, NvmlReport& report) {
  Nvml nvml(library, report);
  if (nvml.loaded()) nvml.read_all();
}

}  // namespace polyring::probe
