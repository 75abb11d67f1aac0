// One device as this process sees it: its streams, its peers, its error that stays, its count of operations.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/software_gpu/gate.hpp"
#include "tests/software_gpu/plan.hpp"

namespace polyring::software_gpu {

class Stream;

/// Devices by their number in the plan.
using DeviceSet = std::uint64_t;
constexpr DeviceSet only(int physical) { return DeviceSet{1} << physical; }
inline constexpr DeviceSet kAllDevices = ~DeviceSet{0};

class Device {
 public:
  Device(int ordinal_here, int number_in_plan, const Plan& whole_plan)
      : ordinal(ordinal_here),
        physical(number_in_plan),
        plan(whole_plan.devices[static_cast<std::size_t>(number_in_plan)]),
        whole_plan_(whole_plan),
        reach_(only(number_in_plan)) {}

  const int ordinal;   // in this process
  const int physical;  // in the plan
  const DevicePlan& plan;

  /// What all calls on this device return from now on; cudaSuccess while it works. The first error stays.
  cudaError_t error() const { return error_.load(); }
  void fail(cudaError_t code);

  bool is_peer(int other_physical) const { return plan.peers[static_cast<std::size_t>(other_physical)]; }
  /// The devices whose memory this one's kernels may touch.
  DeviceSet reach() const { return reach_.load(); }
  void extend_reach(int other_physical) { reach_ |= only(other_physical); }
  void reduce_reach(int other_physical) { reach_ &= ~only(other_physical); }

  // The rest under Process::mutex.
  DeviceSet enabled_peers = 0;  // by cudaDeviceEnablePeerAccess
  std::vector<std::shared_ptr<Stream>> streams;
  std::shared_ptr<Stream> legacy;
  std::vector<Point> destroyed_streams;  // the ends of those that still have work
  std::size_t allocated_bytes = 0;
  unsigned streams_made = 0;

  /// The fault of the plan that the next operation or allocation has.
  std::optional<Fault> next_operation();
  std::optional<Fault> next_allocation(std::size_t bytes);

 private:
  std::optional<Fault> fault_at(bool allocation, std::uint64_t number, std::size_t bytes) const;

  const Plan& whole_plan_;
  std::atomic<cudaError_t> error_{cudaSuccess};
  std::atomic<DeviceSet> reach_;
  std::uint64_t operations_ = 0;
  std::uint64_t allocations_ = 0;
};

/// As `nvidia-smi -L` prints it.
std::string uuid_text(const Plan& plan, int physical);
cudaUUID_t uuid_of(const Plan& plan, int physical);

}  // namespace polyring::software_gpu
