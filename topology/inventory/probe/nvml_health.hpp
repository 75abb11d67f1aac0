// How GPUs are and were, by NVML: a child process watches them while others measure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "topology/inventory/probe/helper.hpp"
#include "topology/inventory/probe/nvml_report.hpp"

namespace polyring::probe {

/// Plain memory, which the child fills. Numbers are 0 where NVML does not tell them.
struct NvmlGpuHealth {
  int error = 0;  // nvmlReturn_t of opening it
  std::array<char, 96> name{};
  std::array<char, 32> pci{};  // "0000:1b:00.0"
  unsigned sm_megahertz = 0;
  unsigned sm_most_megahertz = 0;      // that it can do
  unsigned sm_seen_megahertz = 0;      // the highest while it was watched and not idle
  unsigned memory_most_megahertz = 0;  // that it can do
  unsigned set_megahertz = 0;          // of applications, as somebody has set it
  unsigned default_set_megahertz = 0;  // as it comes
  unsigned celsius = 0;
  unsigned hottest_celsius = 0;   // while it was watched
  unsigned slowdown_celsius = 0;  // from which it slows itself down
  unsigned power_limit_milliwatts = 0;
  unsigned default_power_limit_milliwatts = 0;
  std::uint64_t clock_reasons = 0;  // bits of chapter «NvmlClocksEventReasons», at any time while watched
  bool clock_reasons_known = false;
  int ecc = -1;                          // 1: on; -1: unknown
  std::uint64_t uncorrected_errors = 0;  // ECC, since the driver was loaded
  std::uint64_t uncorrected_before = 0;  // of these, when the watch began
  unsigned retired_pages = 0;
  unsigned remapped_rows = 0;
  bool retirement_pending = false;  // of pages or rows, at the next reset
  bool remapping_failed = false;
  bool events_watched = false;  // Xid events are told
  std::uint64_t xids = 0;       // how many came while it was watched
  std::array<std::uint64_t, 8> first_xids{};
};

struct NvmlHealthReport : NvmlNotes {
  std::array<char, 80> driver{};
  int listed = 0;
  std::array<NvmlGpuHealth, kMostNvmlGpus> gpus{};
};

struct GpuHealth {
  std::string driver;
  std::vector<NvmlGpuHealth> gpus;
  std::string why_not;  // half a sentence; empty: NVML has answered
};

/// "hardware slowdown", "temperature (software)", … of the reasons by which a GPU holds its clocks down;
/// those of an idle GPU and of clocks that somebody has set are left out.
std::vector<std::string> throttle_reasons(std::uint64_t clock_reasons);

/// From its making on it looks at all GPUs twice a second, and keeps what it has seen.
class GpuWatch {
 public:
  explicit GpuWatch(std::string library = "libnvidia-ml.so.1");

  /// Now, and since the watch began. Loading a driver takes seconds, see add_nvml().
  GpuHealth read(Seconds limit = {30});

 private:
  std::string library_;
  Shared<NvmlHealthReport> report_;
  Helper helper_;
};

}  // namespace polyring::probe
