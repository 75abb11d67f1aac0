#include "bench/accept/cpu_limits.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>

namespace polyring {
namespace {

std::optional<double> number_in(const std::filesystem::path& file) {
  std::ifstream text(file);
  double number = 0;
  return text >> number ? std::optional(number) : std::nullopt;
}

}  // namespace

CpuLimits read_cpu_limits(const std::filesystem::path& root) {
  CpuLimits limits;
  std::map<double, std::uint64_t> packages;
  std::error_code none;
  for (const auto& cpu : std::filesystem::directory_iterator(root / "sys/devices/system/cpu", none)) {
    const auto could = number_in(cpu.path() / "cpufreq/cpuinfo_max_freq");  // in kHz, as the next
    const auto may = number_in(cpu.path() / "cpufreq/scaling_max_freq");
    if (could && may) {
      ++limits.cpus;
      if (*may < *could) {
        ++limits.limited;
        if (limits.least_MHz == 0 || *may / 1e3 < limits.least_MHz) {
          limits.least_MHz = *may / 1e3;
          limits.could_MHz = *could / 1e3;
        }
      }
    }
    const auto throttled = [&](const char* count) {
      return static_cast<std::uint64_t>(number_in(cpu.path() / "thermal_throttle" / count).value_or(0));
    };
    limits.throttled += throttled("core_throttle_count");
    // All CPUs of a package show its counter.
    const double package = number_in(cpu.path() / "topology/physical_package_id").value_or(-1);
    packages[package] = std::max(packages[package], throttled("package_throttle_count"));
  }
  for (const auto& [package, count] : packages) limits.throttled += count;
  return limits;
}

}  // namespace polyring
