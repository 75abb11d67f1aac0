// What the calls of the API share: the devices that this process sees, and the current one of each thread.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "tests/software_gpu/device.hpp"
#include "tests/software_gpu/plan.hpp"

namespace polyring::software_gpu {

class Process {
 public:
  /// Reads the plan at the first call. Lives until the process ends, as its streams may.
  static Process& get();
  static Process* if_begun();

  bool has_devices() const { return !devices_.empty(); }
  int device_count() const { return static_cast<int>(devices_.size()); }
  /// Throws Failure(cudaErrorInvalidDevice) where there is none.
  Device& device(int ordinal) const;
  /// The visible device with this number in the plan, or null.
  Device* of_physical(int physical) const;
  Device& current() const { return device(current_ordinal()); }
  static int current_ordinal();
  static void set_current(int ordinal);

  /// Whether this is a child of the process that began to use CUDA: CUDA does not work there.
  bool is_forked() const;

  const Plan plan;
  std::mutex mutex;  // of all that follows calls of the API, except what an object guards by itself

 private:
  Process();

  std::vector<std::unique_ptr<Device>> devices_;
};

/// Whether this thread is inside a function of cudaLaunchHostFunc, which may not call CUDA.
bool in_host_function();
void set_in_host_function(bool inside);

}  // namespace polyring::software_gpu
