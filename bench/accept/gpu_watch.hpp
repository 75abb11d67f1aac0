// How a host's GPUs are, and what happened to them since the run began: for the check gpu.health.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "topology/inventory/probe/nvml_health.hpp"

namespace polyring {

/// What a check needs of probe::NvmlGpuHealth. Numbers are 0 where NVML does not tell them.
struct GpuState {
  int error = 0;     // by which NVML cannot open it: nvmlReturn_t
  std::string name;  // "NVIDIA H100 80GB HBM3"
  std::string pci;   // "0000:1b:00.0"
  unsigned clock_MHz = 0;
  unsigned most_MHz = 0;          // that it can do
  unsigned seen_MHz = 0;          // the highest since the run began, except while it was idle
  unsigned memory_MHz = 0;        // that its memory can do
  unsigned set_MHz = 0;           // that somebody lets it do
  unsigned default_set_MHz = 0;   // that it comes with
  unsigned celsius = 0;           // the highest since the run began
  unsigned slowdown_celsius = 0;  // from which it slows itself down
  double watts = 0;               // its power limit
  double default_watts = 0;
  bool slowdown_known = false;           // whether anything has slowed it down
  std::vector<std::string> slowdown;     // since the run began: "power brake"; power limits are left out
  int ecc = -1;                          // 1: on; -1: unknown
  std::uint64_t uncorrected = 0;         // ECC errors since its driver was loaded
  std::uint64_t uncorrected_before = 0;  // of these, before the run began
  unsigned retired_pages = 0;            // of its memory
  bool waits_for_reset = false;          // to take faulty memory out of use
  bool remapping_failed = false;
  bool xids_known = false;
  std::vector<std::uint64_t> xids;  // since the run began, the first ones
  bool operator==(const GpuState&) const = default;
};

struct GpuStates {
  std::string driver;
  std::vector<GpuState> gpus;
  std::string why_not;  // half a sentence; empty: NVML has answered, or there is no driver of NVIDIA's
};

GpuStates states_of(const probe::GpuHealth& health);

/// As messages between hosts.
std::string json_of(const GpuStates& states);
/// Of an empty text: none.
GpuStates gpu_states_of(const std::string& json);

/// From now on this host's GPUs are watched by a child process. To be called before MPI is initialised, see
/// probe_own_host(). Does nothing where there is no driver of NVIDIA's, and in processes that are not the
/// first of their host.
void watch_own_gpus();

/// What that watch has seen, as json_of(); empty where there is none.
std::string own_gpu_states();

}  // namespace polyring
