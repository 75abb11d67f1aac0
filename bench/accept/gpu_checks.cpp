#include "bench/accept/gpu_checks.hpp"

#include <algorithm>

namespace polyring {

std::string why_not_yet(std::string_view name) {
  if (std::ranges::find(kLaterChecks, name) == kLaterChecks.end()) return "";
  return std::string(name) + ": this version does not have this check yet; leave it out";
}

}  // namespace polyring
