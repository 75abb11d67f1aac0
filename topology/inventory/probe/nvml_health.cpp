#include "topology/inventory/probe/nvml_health.hpp"

#include <utility>

#include "topology/inventory/probe/nvml.hpp"
#include "topology/inventory/probe/nvml_calls.hpp"

namespace polyring::probe {
namespace {

using namespace nvml;

// Of NVIDIA's «NVML API Reference Guide», as in nvml_calls.hpp.
using EventSet = struct nvmlEventSet_st*;

struct EventData {  // nvmlEventData_t of nvmlEventSetWait_v2
  Device device;
  unsigned long long type;
  unsigned long long data;  // the number of an Xid
  unsigned gpu_instance;
  unsigned compute_instance;
};

constexpr int kClockGraphics = 0;        // NVML_CLOCK_GRAPHICS
constexpr int kClockSm = 1;              // NVML_CLOCK_SM
constexpr int kClockMemory = 2;          // NVML_CLOCK_MEM
constexpr int kSensorGpu = 0;            // NVML_TEMPERATURE_GPU
constexpr int kThresholdSlowdown = 1;    // NVML_TEMPERATURE_THRESHOLD_SLOWDOWN
constexpr Return kInsufficientSize = 7;  // NVML_ERROR_INSUFFICIENT_SIZE: the count is set all the same
constexpr unsigned long long kXidCritical = 0x8;  // nvmlEventTypeXidCriticalError
constexpr std::uint64_t kIdle = 0x1;              // nvmlClocksEventReasonGpuIdle
constexpr std::chrono::milliseconds kBetween{500};

constexpr struct {
  std::uint64_t bit;
  const char* reason;
} kThrottling[] = {
    // Chapter «NvmlClocksEventReasons».
    {0x04, "power limit"},
    {0x08, "hardware slowdown"},
    {0x20, "temperature (software)"},
    {0x40, "temperature (hardware)"},
    {0x80, "power brake"},
};

/// In the child.
class Watcher {
 public:
  Watcher(const std::string& library, NvmlHealthReport& report) : calls_(library, report), report_(report) {}

  void serve(HelperRequests& requests) {
    if (calls_.loaded()) open();
    while (true) {
      const HelperRequests::Next next = requests.wait(kBetween);
      if (next == HelperRequests::Next::over) return;
      if (report_.init == kSuccess) look();
      if (next != HelperRequests::Next::asked) continue;
      if (report_.init == kSuccess) read();
      requests.answered();
    }
  }

 private:
  template <typename Action>
  void for_each(const Action& action) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(report_.listed); ++i)
      if (report_.gpus[i].error == kSuccess) action(devices_[i], report_.gpus[i]);
  }

  void open() {
    report_.init = calls_.call("nvmlInit_v2");
    if (report_.init != kSuccess) return;
    calls_.call("nvmlSystemGetDriverVersion", report_.driver.data(),
                static_cast<unsigned>(report_.driver.size()));
    unsigned count = 0;
    calls_.call("nvmlDeviceGetCount_v2", &count);
    report_.listed = static_cast<int>(std::min<unsigned>(count, kMostNvmlGpus));
    for (unsigned i = 0; i < static_cast<unsigned>(report_.listed); ++i)
      report_.gpus[i].error = calls_.call("nvmlDeviceGetHandleByIndex_v2", i, &devices_[i]);
    const bool has_events = calls_.call("nvmlEventSetCreate", &events_) == kSuccess;
    for_each([&](Device device, NvmlGpuHealth& gpu) {
      calls_.call("nvmlDeviceGetName", device, gpu.name.data(), static_cast<unsigned>(gpu.name.size()));
      PciInfo pci{};
      if (calls_.call("nvmlDeviceGetPciInfo_v3", device, &pci) == kSuccess)
        copy_text(gpu.pci, address_of(pci));
      gpu.events_watched =
          has_events && calls_.call("nvmlDeviceRegisterEvents", device, kXidCritical, events_) == kSuccess;
      gpu.uncorrected_before = uncorrected_errors(device);
    });
  }

  /// What passes.
  void look() {
    for_each([&](Device device, NvmlGpuHealth& gpu) {
      unsigned long long reasons = 0;
      constexpr const char* kReasons = "nvmlDeviceGetCurrentClocksEventReasons";
      constexpr const char* kBefore535 = "nvmlDeviceGetCurrentClocksThrottleReasons";
      const bool known =
          calls_.call(calls_.has(kReasons) ? kReasons : kBefore535, device, &reasons) == kSuccess;
      gpu.clock_reasons_known = known;
      if (known) gpu.clock_reasons |= reasons;
      if (calls_.call("nvmlDeviceGetClockInfo", device, kClockSm, &gpu.sm_megahertz) == kSuccess && known &&
          (reasons & kIdle) == 0)
        gpu.sm_seen_megahertz = std::max(gpu.sm_seen_megahertz, gpu.sm_megahertz);
      calls_.call("nvmlDeviceGetTemperature", device, kSensorGpu, &gpu.celsius);
      gpu.hottest_celsius = std::max(gpu.hottest_celsius, gpu.celsius);
    });
    look_for_xids();
  }

  void look_for_xids() {
    EventData event{};
    while (events_ != nullptr && calls_.call("nvmlEventSetWait_v2", events_, &event, 0u) == kSuccess) {
      for (std::size_t i = 0; i < static_cast<std::size_t>(report_.listed); ++i) {
        NvmlGpuHealth& gpu = report_.gpus[i];
        if (devices_[i] != event.device || event.type != kXidCritical) continue;
        if (gpu.xids < gpu.first_xids.size()) gpu.first_xids[gpu.xids] = event.data;
        ++gpu.xids;
      }
    }
  }

  void read() {
    for_each([&](Device device, NvmlGpuHealth& gpu) {
      calls_.call("nvmlDeviceGetMaxClockInfo", device, kClockSm, &gpu.sm_most_megahertz);
      calls_.call("nvmlDeviceGetMaxClockInfo", device, kClockMemory, &gpu.memory_most_megahertz);
      calls_.call("nvmlDeviceGetApplicationsClock", device, kClockGraphics, &gpu.set_megahertz);
      calls_.call("nvmlDeviceGetDefaultApplicationsClock", device, kClockGraphics,
                  &gpu.default_set_megahertz);
      calls_.call("nvmlDeviceGetTemperatureThreshold", device, kThresholdSlowdown, &gpu.slowdown_celsius);
      calls_.call("nvmlDeviceGetEnforcedPowerLimit", device, &gpu.power_limit_milliwatts);
      calls_.call("nvmlDeviceGetPowerManagementDefaultLimit", device, &gpu.default_power_limit_milliwatts);
      read_memory(device, gpu);
    });
  }

  unsigned long long uncorrected_errors(Device device) {
    unsigned long long errors = 0;
    const Return result =
        calls_.call("nvmlDeviceGetTotalEccErrors", device, kErrorUncorrected, kSinceDriverLoaded, &errors);
    return result == kSuccess ? errors : 0;
  }

  void read_memory(Device device, NvmlGpuHealth& gpu) {
    int current = 0;
    int pending = 0;
    if (calls_.call("nvmlDeviceGetEccMode", device, &current, &pending) == kSuccess) gpu.ecc = current;
    gpu.uncorrected_errors = uncorrected_errors(device);
    gpu.retired_pages = 0;
    for (const int cause :
         {0, 1}) {  // nvmlPageRetirementCause_t: several corrected errors, an uncorrected one
      unsigned pages = 0;
      const Return result = calls_.call("nvmlDeviceGetRetiredPages", device, cause, &pages,
                                        static_cast<unsigned long long*>(nullptr));
      if (result == kSuccess || result == kInsufficientSize) gpu.retired_pages += pages;
    }
    if (calls_.call("nvmlDeviceGetRetiredPagesPendingStatus", device, &pending) == kSuccess)
      gpu.retirement_pending = pending == 1;
    unsigned corrected = 0;
    unsigned uncorrected = 0;
    unsigned waiting = 0;
    unsigned failed = 0;
    if (calls_.call("nvmlDeviceGetRemappedRows", device, &corrected, &uncorrected, &waiting, &failed) !=
        kSuccess)
      return;
    gpu.remapped_rows = corrected + uncorrected;
    gpu.retirement_pending = gpu.retirement_pending || waiting != 0;
    gpu.remapping_failed = failed != 0;
  }

  Calls calls_;
  NvmlHealthReport& report_;
  std::array<Device, kMostNvmlGpus> devices_{};
  EventSet events_ = nullptr;
};

}  // namespace

std::vector<std::string> throttle_reasons(std::uint64_t clock_reasons) {
  std::vector<std::string> reasons;
  for (const auto& [bit, reason] : kThrottling)
    if ((clock_reasons & bit) != 0) reasons.emplace_back(reason);
  return reasons;
}

GpuWatch::GpuWatch(std::string library)
    : library_(std::move(library)),
      helper_([this](HelperRequests& requests) { Watcher(library_, *report_).serve(requests); }) {}

GpuHealth GpuWatch::read(Seconds limit) {
  const Ending ending = helper_.ask(limit);
  GpuHealth health{text_of(report_->driver), {}, nvml_failure(ending, *report_, library_, limit)};
  const auto listed = static_cast<std::size_t>(std::clamp(report_->listed, 0, kMostNvmlGpus));
  if (health.why_not.empty()) health.gpus.assign(report_->gpus.begin(), report_->gpus.begin() + listed);
  return health;
}

}  // namespace polyring::probe
