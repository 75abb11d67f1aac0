// Calls of NVIDIA's management library, by name: see nvml_library.hpp.
#pragma once

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "topology/inventory/probe/nvml_report.hpp"

namespace polyring::probe::nvml {

// What we use of NVML, declared from NVIDIA's «NVML API Reference Guide» (docs.nvidia.com/deploy/nvml-api).
// All functions return an nvmlReturn_t; NVML promises that numbers and structures of one version never
// change.
using Device = struct nvmlDevice_st*;
using Return = int;

inline constexpr Return kSuccess = 0;
inline constexpr Return kNoPermission = 4;       // NVML_ERROR_NO_PERMISSION
inline constexpr Return kFunctionNotFound = 13;  // NVML_ERROR_FUNCTION_NOT_FOUND

struct PciInfo {  // nvmlPciInfo_t of nvmlDeviceGetPciInfo_v3
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned device_and_vendor;  // vendor in the lower half
  unsigned subsystem;
  char bus_id[32];
};

inline constexpr int kErrorUncorrected = 1;   // NVML_MEMORY_ERROR_TYPE_UNCORRECTED
inline constexpr int kSinceDriverLoaded = 0;  // NVML_VOLATILE_ECC

template <std::size_t N>
void copy_text(std::array<char, N>& to, std::string_view text) {
  to = {};
  std::copy_n(text.data(), std::min(text.size(), N - 1), to.data());
}

inline std::string address_of(const PciInfo& pci) {
  return fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
}

/// The library, which is never closed, and what it answers.
class Calls {
 public:
  /// Without a library nothing may be called; the notes say why.
  Calls(const std::string& library, NvmlNotes& notes) : notes_(notes) {
    copy_text(notes.call, "dlopen");
    library_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) return;
    const char* const why = dlerror();
    copy_text(notes.loading, why == nullptr ? "it cannot be loaded" : why);
  }

  bool loaded() const { return library_ != nullptr; }
  bool has(const char* name) const { return dlsym(library_, name) != nullptr; }

  /// Calls the function of this name, and notes the call; NVML_ERROR_FUNCTION_NOT_FOUND when an older driver
  /// has none.
  template <typename... Args>
  Return call(const char* name, Args... args) {
    copy_text(notes_.call, name);
    void* const symbol = dlsym(library_, name);
    if (symbol == nullptr) {
      note_missing(name);
      return kFunctionNotFound;
    }
    const Return result = reinterpret_cast<Return (*)(Args...)>(symbol)(args...);
    if (result == kNoPermission && !notes_.no_permission) {
      notes_.no_permission = true;
      copy_text(notes_.refused, name);
    }
    return result;
  }

 private:
  void note_missing(std::string_view name) {
    const std::string_view known = notes_.missing.data();
    if (known.find(name) != std::string_view::npos) return;
    copy_text(notes_.missing, known.empty() ? std::string(name) : fmt::format("{}, {}", known, name));
  }

  void* library_ = nullptr;
  NvmlNotes& notes_;
};

}  // namespace polyring::probe::nvml
