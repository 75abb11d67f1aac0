#include "topology/inventory/probe/nvml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "topology/inventory/probe/nvml_library.hpp"
#include "topology/inventory/probe/trial.hpp"

namespace polyring::probe {
namespace {

/// Why nvmlInit_v2 failed, and what would help; numbers of nvmlReturn_t.
std::string init_failure(int error) {
  switch (error) {
    case 4:
      return "this user may not open /dev/nvidiactl; join the group that owns it, or run as root";
    case 9:
      return "NVIDIA's driver is not loaded, or not visible in this container; load it with: "
             "modprobe nvidia (as root)";
    case 12:
      return "a library of NVIDIA's driver is missing; install the driver again";
    case 15:
      return "a GPU has fallen off the bus; see dmesg, and reset or reboot";
    case 17:
      return "the operating system or a cgroup blocks the GPUs' device files; allow them for this container";
    case 18:
      return "the library and the loaded driver are of different versions; reboot, or load the driver again";
    default:
      return fmt::format("nvmlInit_v2 failed with error {}; see whether nvidia-smi works", error);
  }
}

std::string summary(const NvmlReport& report, const Machine& machine) {
  int readable = 0;
  int pairs = 0;
  int peers = 0;
  for (std::size_t a = 0; a < static_cast<std::size_t>(report.gpu_count); ++a) {
    readable += report.gpus[a].read ? 1 : 0;
    for (std::size_t b = a + 1; b < static_cast<std::size_t>(report.gpu_count); ++b) {
      if (report.gpus[a].peer_read[b] == kPeerUnknown) continue;
      ++pairs;
      peers += report.gpus[a].peer_read[b] == 0 && report.gpus[b].peer_read[a] == 0 ? 1 : 0;
    }
  }
  std::string out =
      fmt::format("driver {}, {} GPU{}", text_of(report.driver), readable, readable == 1 ? "" : "s");
  if (pairs > 0) out += fmt::format(", {} of {} pairs reach each other's memory", peers, pairs);
  if (machine.nvswitches > 0) out += ", NVLink through NVSwitches";
  if (report.missing[0] != 0) out += fmt::format("; this driver has no {}", text_of(report.missing));
  if (report.no_permission)
    out += fmt::format("; {} needs more rights than this user has: run as root", text_of(report.refused));
  return out;
}

}  // namespace

std::string nvml_failure(Ending ending, const NvmlNotes& notes, const std::string& library, Seconds limit) {
  if (ending == Ending::crashed)
    return fmt::format("NVIDIA's driver crashed in {}; see whether nvidia-smi works, and dmesg",
                       text_of(notes.call));
  if (ending == Ending::out_of_time)
    return fmt::format(
        "NVIDIA's driver did not answer within {} in {}; see whether nvidia-smi works, and dmesg; "
        "nvidia-smi -pm 1 (as root) keeps the driver loaded, which makes it answer sooner",
        to_text(limit), text_of(notes.call));
  if (notes.init < 0)
    return fmt::format("{} is not there ({}); it comes with NVIDIA's driver", library,
                       text_of(notes.loading));
  return notes.init != 0 ? init_failure(notes.init) : "";
}

bool has_nvidia_driver() {
  // The last is that of Windows' subsystem for Linux.
  return std::ranges::any_of(std::array{"/proc/driver/nvidia", "/dev/nvidiactl", "/dev/dxg"},
                             [](const char* driver) {
                               std::error_code failed;
                               return std::filesystem::exists(driver, failed);
                             });
}

NvmlFindings add_nvml(Machine& machine, const std::function<void(const std::string&)>& notice,
                      const std::string& library, Seconds limit) {
  const Shared<NvmlReport> report;
  const auto wait = [&] {
    if (notice)
      notice(fmt::format("waiting for NVIDIA's driver, up to {}: {}", to_text(limit), text_of(report->call)));
  };
  const Ending ending = try_out([&] { fill_nvml_report(library, *report); }, limit, wait);
  NvmlFindings findings{{"NVML", false, {}}, {}, {}};
  std::string& detail = findings.source.detail;
  detail = nvml_failure(ending, *report, library, limit);
  if (detail.empty()) {
    merge_nvml(*report, machine);
    if (machine.gpu_driver.empty() && report->driver[0] != 0)
      machine.gpu_driver = "NVIDIA " + text_of(report->driver);
    findings.source.read = true;
    detail = summary(*report, machine);
    constexpr std::uint64_t kIdle = 1;  // nvmlClocksEventReasonGpuIdle
    for (int i = 0; i < report->gpu_count; ++i) {
      const NvmlGpu& gpu = report->gpus[static_cast<std::size_t>(i)];
      if (!gpu.read) continue;
      findings.gpus.insert(text_of(gpu.pci));
      if (gpu.clock_reasons_known && (gpu.clock_reasons & kIdle) == 0) findings.busy.insert(text_of(gpu.pci));
    }
  }
  return findings;
}

}  // namespace polyring::probe
