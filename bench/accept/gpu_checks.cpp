#include "bench/accept/gpu_checks.hpp"

#include <algorithm>

namespace polyring {

std::string why_not_yet(std::string_view name) {
  if (std::ranges::find(kGpuChecks, name) == kGpuChecks.end()) return "";
  return std::string(name) + ": this version has no checks of GPUs yet; leave it out";
}

}  // namespace polyring
