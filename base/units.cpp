#include "base/units.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <utility>

#include "base/error.hpp"

namespace polyring {
namespace {

struct Unit {
  std::string_view text;
  double factor;
};

constexpr double kKibi = 1024.0;
// Far beyond what is, so that sums and products stay finite.
constexpr double kMostRate = 1e18;
constexpr double kMostSeconds = 1e9;

constexpr std::array kByteUnits{
    Unit{"", 1},
    Unit{"B", 1},
    Unit{"K", kKibi},
    Unit{"k", kKibi},
    Unit{"KiB", kKibi},
    Unit{"M", kKibi* kKibi},
    Unit{"m", kKibi* kKibi},
    Unit{"MiB", kKibi* kKibi},
    Unit{"G", kKibi* kKibi* kKibi},
    Unit{"g", kKibi* kKibi* kKibi},
    Unit{"GiB", kKibi* kKibi* kKibi},
    Unit{"T", kKibi* kKibi* kKibi* kKibi},
    Unit{"TiB", kKibi* kKibi* kKibi* kKibi},
    Unit{"kB", 1e3},
    Unit{"KB", 1e3},
    Unit{"MB", 1e6},
    Unit{"GB", 1e9},
    Unit{"TB", 1e12},
};

constexpr std::array kBandwidthUnits{
    Unit{"B/s", 1},          Unit{"kB/s", 1e3},       Unit{"MB/s", 1e6},     Unit{"GB/s", 1e9},
    Unit{"TB/s", 1e12},      Unit{"b/s", 0.125},      Unit{"kb/s", 0.125e3}, Unit{"Mb/s", 0.125e6},
    Unit{"Gb/s", 0.125e9},   Unit{"Tb/s", 0.125e12},  Unit{"kbit", 0.125e3}, Unit{"Mbit", 0.125e6},
    Unit{"mbit", 0.125e6},   Unit{"Gbit", 0.125e9},   Unit{"gbit", 0.125e9}, Unit{"kbit/s", 0.125e3},
    Unit{"Mbit/s", 0.125e6}, Unit{"Gbit/s", 0.125e9},
};

constexpr std::array kTimeUnits{
    Unit{"", 1},      Unit{"s", 1},    Unit{"ms", 1e-3}, Unit{"us", 1e-6},
    Unit{"ns", 1e-9}, Unit{"min", 60}, Unit{"h", 3600},
};

/// The number at the front of `text` and the factor of the unit behind it; nothing when either does not
/// parse.
template <std::size_t N>
bool split(std::string_view text, const std::array<Unit, N>& units, double& number, double& factor) {
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(number)) return false;
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  for (const Unit& known : units) {
    if (known.text == unit) {
      factor = known.factor;
      return true;
    }
  }
  return false;
}

/// Three significant digits of `value` in the largest unit that leaves it at 1 or above.
template <std::size_t N>
std::string scaled(double value, const std::array<Unit, N>& units) {
  if (!std::isfinite(value)) return "?";
  for (const Unit& unit : units) {
    if (std::abs(value) >= unit.factor * 0.9995 || &unit == &units.back()) {
      const double shown = value / unit.factor;
      const int decimals = std::abs(shown) >= 99.95 ? 0 : std::abs(shown) >= 9.995 ? 1 : 2;
      return fmt::format("{:.{}f} {}", shown, decimals, unit.text);
    }
  }
  return {};
}

}  // namespace

double rounded(double value) { return std::strtod(fmt::format("{:.12g}", value).c_str(), nullptr); }

std::string significant(double value, int digits) {
  if (!std::isfinite(value)) return "?";
  const int magnitude = value == 0 ? 0 : static_cast<int>(std::floor(std::log10(std::abs(value))));
  std::string text = fmt::format("{:.{}f}", value, std::max(0, digits - 1 - magnitude));
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

Bytes parse_bytes(std::string_view text, std::string_view what) {
  double number = 0;
  double factor = 0;
  if (!split(text, kByteUnits, number, factor)) {
    usage_error("{} '{}' is not a size; write it as 8, 64K, 16M, 1G or 100MB", what, text);
  }
  const double bytes = number * factor;
  // 2^63 as a double is exact; anything at or above it does not fit a signed offset.
  if (bytes < 0 || bytes >= 9223372036854775808.0) {
    usage_error("{} '{}' is out of range; give a size from 0 to 8388607T", what, text);
  }
  if (bytes != std::floor(bytes)) {
    usage_error("{} '{}' is not a whole number of bytes; round it", what, text);
  }
  return {static_cast<std::uint64_t>(bytes)};
}

Bandwidth parse_bandwidth(std::string_view text, std::string_view what) {
  double number = 0;
  double factor = 0;
  if (!split(text, kBandwidthUnits, number, factor) || number <= 0) {
    usage_error("{} '{}' is not a bandwidth above 0; write it as 25GB/s or 200Gb/s", what, text);
  }
  const double rate = number * factor;
  if (rate < 1 || rate > kMostRate)
    usage_error("{} '{}' is out of range; give 1B/s to 1000000TB/s", what, text);
  return {rate};
}

Seconds parse_seconds(std::string_view text, std::string_view what) {
  double number = 0;
  double factor = 0;
  if (!split(text, kTimeUnits, number, factor) || number < 0) {
    usage_error("{} '{}' is not a time; write it as 5us, 1.5ms or 2s", what, text);
  }
  const double seconds = number * factor;
  if (seconds > kMostSeconds) usage_error("{} '{}' is out of range; give 1000000000s or less", what, text);
  return {seconds};
}

std::string to_text(Bytes bytes) {
  static constexpr std::array kBinary{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  static constexpr std::array kDecimal{"B", "kB", "MB", "GB", "TB", "PB"};
  const bool binary = bytes.value % 1024 == 0;
  const std::uint64_t base = binary ? 1024 : 1000;
  std::uint64_t value = bytes.value;
  std::size_t suffix = 0;
  while (value != 0 && value % base == 0 && suffix + 1 < kBinary.size()) {
    value /= base;
    ++suffix;
  }
  return fmt::format("{}{}", value, binary ? kBinary[suffix] : kDecimal[suffix]);
}

std::string to_text(Bandwidth bandwidth) {
  static constexpr std::array kUnits{Unit{"TB/s", 1e12}, Unit{"GB/s", 1e9}, Unit{"MB/s", 1e6},
                                     Unit{"kB/s", 1e3}, Unit{"B/s", 1}};
  return bandwidth.known() ? scaled(bandwidth.value, kUnits) : "?";
}

std::string to_text(Seconds seconds) {
  static constexpr std::array kUnits{Unit{"s", 1}, Unit{"ms", 1e-3}, Unit{"us", 1e-6}, Unit{"ns", 1e-9}};
  return seconds.value == 0 ? "0 s" : scaled(seconds.value, kUnits);
}

}  // namespace polyring
