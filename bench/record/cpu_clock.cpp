#include "bench/record/cpu_clock.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

namespace polyring {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

/// Of text such as "2299.998" and "3800.000000MHz".
std::optional<double> number_at(std::string_view text) {
  double number = 0;
  const bool good = std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc{};
  return good && number > 0 ? std::optional(number) : std::nullopt;
}

/// Lines are "KEY : VALUE"; "processor" begins the lines of a CPU. Its clock is "cpu MHz" on x86 and "clock"
/// on POWER; others do not tell it.
std::optional<double> of_cpuinfo(const std::filesystem::path& file, int cpu) {
  std::ifstream lines(file);
  const std::string wanted = std::to_string(cpu);
  bool is_wanted = false;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view key = trimmed(std::string_view(line).substr(0, colon));
    const std::string_view value = trimmed(std::string_view(line).substr(colon + 1));
    if (key == "processor") is_wanted = value == wanted;
    if (is_wanted && (key == "cpu MHz" || key == "clock")) return number_at(value);
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> clock_MHz(const std::filesystem::path& root, int cpu) {
  std::ifstream file(root / fmt::format("sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", cpu));
  double kHz = 0;
  if (file >> kHz && kHz > 0) return kHz / 1e3;
  return of_cpuinfo(root / "proc/cpuinfo", cpu);
}

}  // namespace polyring
