#include "collectives/library/mpi/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"
#include "base/names.hpp"
#include "collectives/library/mpi/failure.hpp"
#include "collectives/runtime/mpi/world.hpp"

namespace polyring::interposer {
namespace {

constexpr std::array<std::string_view, kSizeClasses> kNames{"float", "double", "int32", "int64", "allgather"};
/// From where Polyring was faster than Open MPI and MPICH between two processes: see docs/library.md.
constexpr std::array<Bytes, kSizeClasses> kMeasured{kLeast, kLeast, kLeast, kLeast, Bytes{32 << 10}};

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string_view{} : value;
}

Bytes parse_threshold(std::string_view text) {
  return std::max(kLeast, parse_bytes(text, "POLYRING_MPI_MIN_BYTES"));
}

void parse_thresholds(std::string_view text, Settings& settings) {
  if (text.find('=') == std::string_view::npos) return settings.thresholds.fill(parse_threshold(text));
  while (!text.empty()) {
    const std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    const std::size_t equals = item.find('=');
    const auto name = std::find(kNames.begin(), kNames.end(), item.substr(0, equals));
    if (equals == std::string_view::npos || name == kNames.end()) {
      usage_error(
          "POLYRING_MPI_MIN_BYTES has '{}'; give one number of bytes, or some of float=, double=, int32=, "
          "int64= and allgather=, separated by commas",
          item);
    }
    settings.thresholds[static_cast<std::size_t>(name - kNames.begin())] =
        parse_threshold(item.substr(equals + 1));
  }
}

}  // namespace

SizeClass size_class_of(ElementKind kind) {
  switch (kind) {
    case ElementKind::float64:
      return SizeClass::float64;
    case ElementKind::int32:
      return SizeClass::int32;
    case ElementKind::int64:
      return SizeClass::int64;
    default:
      return SizeClass::float32;
  }
}

Settings read_settings() {
  Settings settings;
  settings.thresholds = kMeasured;
  settings.timeout = kNoLimit;
  settings.counters = variable("POLYRING_MPI_COUNTERS");
  if (const std::string_view text = variable("POLYRING_MPI"); !text.empty()) {
    const std::string word = lower_case(text);
    if (word != "on" && word != "off") usage_error("POLYRING_MPI is '{}'; set it to on or off", text);
    settings.on = word == "on";
  }
  if (const std::string_view text = variable("POLYRING_MPI_MIN_BYTES"); !text.empty())
    parse_thresholds(text, settings);
  if (const std::string_view text = variable("POLYRING_MPI_TIMEOUT"); !text.empty() && text != "none") {
    settings.timeout = parse_seconds(text, "POLYRING_MPI_TIMEOUT");
    if (settings.timeout.value <= 0)
      usage_error("POLYRING_MPI_TIMEOUT is '{}'; set it to none, or to more than 0 seconds", text);
    settings.timeout = std::min(settings.timeout, kNoLimit);
  }
  return settings;
}

const Settings& own_settings() {
  static const auto* const settings = new Settings([] {
    try {
      return read_settings();
    } catch (const Error& error) {
      if (launched_rank() == 0) say(fmt::format("{}; every call goes on to MPI", error.what()));
      Settings off;
      off.on = false;
      off.timeout = kNoLimit;
      off.counters = variable("POLYRING_MPI_COUNTERS");
      return off;
    }
  }());
  return *settings;
}

}  // namespace polyring::interposer
