// Where the data of a job's ranks are.
#pragma once

#include <optional>
#include <string_view>

namespace polyring {

enum class DataDevice {
  cpu,  // in the hosts' memory
  cuda  // on GPUs
};

/// The words of --device: "cpu" and "cuda".
constexpr std::string_view to_text(DataDevice device) { return device == DataDevice::cuda ? "cuda" : "cpu"; }

/// Nothing: there is no such device.
constexpr std::optional<DataDevice> data_device(std::string_view text) {
  for (const DataDevice device : {DataDevice::cpu, DataDevice::cuda})
    if (to_text(device) == text) return device;
  return std::nullopt;
}

}  // namespace polyring
