// What NVML says of a machine's GPUs, as plain memory: a child process fills it, see nvml.hpp.
//
// Numbers are as NVIDIA's «NVML API Reference Guide» (docs.nvidia.com/deploy/nvml-api) defines them.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

namespace polyring::probe {

constexpr int kMostNvmlGpus = 64;
constexpr int kMostNvmlLinks = 36;

/// nvmlIntNvLinkDeviceType_t, in chapter «Device Structs».
enum class NvmlRemote : unsigned { gpu = 0, npu = 1, nvswitch = 2, unknown = 255 };

struct NvmlLink {
  bool present = false;
  bool active = false;
  unsigned version = 0;               // nvmlNvlinkVersion_t: 6 is NVLink 4.0
  unsigned megabytes_per_second = 0;  // on the line, per direction; 0 when unknown
  NvmlRemote remote = NvmlRemote::unknown;
  std::array<char, 32> remote_pci{};  // "0000:01:00.0"
};

struct NvmlGpu {
  bool read = false;  // false: NVML lists it, but gives no handle for it
  int error = 0;      // nvmlReturn_t of that
  std::array<char, 96> name{};
  std::array<char, 32> pci{};
  std::uint64_t memory_bytes = 0;
  unsigned memory_bus_bits = 0;
  unsigned memory_megahertz = 0;  // at most
  std::array<NvmlLink, kMostNvmlLinks> links{};
  unsigned c2c_links = 0;                 // that are active
  unsigned c2c_megabytes_per_second = 0;  // of one, per direction
  std::uint64_t clock_reasons = 0;        // bits of chapter «NvmlClocksEventReasons»
  bool clock_reasons_known = false;
  std::uint64_t uncorrected_errors = 0;  // ECC, since the driver was loaded
  bool mig = false;                      // it is cut into slices (Multi-Instance GPU)
  bool ecc_change_pending = false;
  bool retired_pages_pending = false;
  bool row_remap_pending = false;
  bool row_remap_failed = false;
  std::array<unsigned char, kMostNvmlGpus> peer_read{};    // nvmlGpuP2PStatus_t with each GPU; 0 is possible
  std::array<unsigned char, kMostNvmlGpus> peer_nvlink{};  // the same, over NVLink
};

constexpr unsigned char kPeerUnknown = 255;

/// How the library was loaded and called.
struct NvmlNotes {
  std::array<char, 64> call{};      // the last function that was called
  int init = -1;                    // nvmlReturn_t of nvmlInit_v2; -1: the library was not loaded
  std::array<char, 256> loading{};  // why not
  bool no_permission = false;       // some call was refused for want of rights,
  std::array<char, 64> refused{};   // the first of them
  std::array<char, 128> missing{};  // functions that this driver does not have
};

struct NvmlReport : NvmlNotes {
  std::array<char, 80> driver{};
  int listed = 0;     // GPUs that NVML counts
  int gpu_count = 0;  // of `gpus` that were read to the end
  std::array<NvmlGpu, kMostNvmlGpus> gpus{};
};

/// A text of the report, which the child process need not have ended.
template <std::size_t N>
std::string text_of(const std::array<char, N>& characters) {
  return {characters.data(), strnlen(characters.data(), N)};
}

}  // namespace polyring::probe
