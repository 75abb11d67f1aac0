#include "bench/accept/gpu_watch.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/printable.hpp"
#include "collectives/runtime/mpi/world.hpp"
#include "topology/inventory/probe/nvml.hpp"

namespace polyring {
namespace {

constexpr std::uint64_t kPowerLimit = 0x4;  // nvmlClocksEventReasonSwPowerCap: as it is to be under load

/// The one of this process. Null: none.
std::unique_ptr<probe::GpuWatch>& own_watch() {
  static std::unique_ptr<probe::GpuWatch> watch;
  return watch;
}

GpuState state_of(const probe::NvmlGpuHealth& gpu) {
  GpuState state;
  state.error = gpu.error;
  state.name = printable_line(probe::text_of(gpu.name), gpu.name.size());
  state.pci = printable_line(probe::text_of(gpu.pci), gpu.pci.size());
  state.clock_MHz = gpu.sm_megahertz;
  state.most_MHz = gpu.sm_most_megahertz;
  state.seen_MHz = gpu.sm_seen_megahertz;
  state.memory_MHz = gpu.memory_most_megahertz;
  state.set_MHz = gpu.set_megahertz;
  state.default_set_MHz = gpu.default_set_megahertz;
  state.celsius = gpu.hottest_celsius;
  state.slowdown_celsius = gpu.slowdown_celsius;
  state.watts = gpu.power_limit_milliwatts / 1e3;
  state.default_watts = gpu.default_power_limit_milliwatts / 1e3;
  state.slowdown_known = gpu.clock_reasons_known;
  state.slowdown = probe::throttle_reasons(gpu.clock_reasons & ~kPowerLimit);
  state.ecc = gpu.ecc;
  state.uncorrected = gpu.uncorrected_errors;
  state.uncorrected_before = gpu.uncorrected_before;
  state.retired_pages = gpu.retired_pages;
  state.waits_for_reset = gpu.retirement_pending;
  state.remapping_failed = gpu.remapping_failed;
  state.xids_known = gpu.events_watched;
  const auto xids = std::min<std::size_t>(gpu.xids, gpu.first_xids.size());
  state.xids.assign(gpu.first_xids.begin(), gpu.first_xids.begin() + static_cast<std::ptrdiff_t>(xids));
  return state;
}

}  // namespace

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuState, error, name, pci, clock_MHz, most_MHz, seen_MHz, memory_MHz,
                                   set_MHz, default_set_MHz, celsius, slowdown_celsius, watts, default_watts,
                                   slowdown_known, slowdown, ecc, uncorrected, uncorrected_before,
                                   retired_pages, waits_for_reset, remapping_failed, xids_known, xids)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(GpuStates, driver, gpus, why_not)

GpuStates states_of(const probe::GpuHealth& health) {
  GpuStates states{printable_line(health.driver, health.driver.size()), {}, health.why_not};
  for (const probe::NvmlGpuHealth& gpu : health.gpus) states.gpus.push_back(state_of(gpu));
  return states;
}

std::string json_of(const GpuStates& states) {
  return nlohmann::json(states).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

GpuStates gpu_states_of(const std::string& json) {
  return json.empty() ? GpuStates{} : nlohmann::json::parse(json).get<GpuStates>();
}

void watch_own_gpus() {
  if (launched_local_rank() == 0 && probe::has_nvidia_driver())
    own_watch() = std::make_unique<probe::GpuWatch>();
}

std::string own_gpu_states() { return own_watch() ? json_of(states_of(own_watch()->read())) : ""; }

}  // namespace polyring
