#include "bench/accept/checks/checks.hpp"

#include <algorithm>
#include <array>

namespace polyring {

std::span<const Check* const> checks() {
  static constexpr std::array kAll{&kHostsAlike,   &kLinks,     &kCorrect, &kHostAllreduce, &kPairsAllreduce,
                                   &kAllAllreduce, &kRails,     &kDips,    &kStragglers,    &kRepeatability,
                                   &kNicCounters,  &kHostCpu,   &kHostGdr, &kGpuCopies,     &kGpuMemory,
                                   &kGpuCompute,   &kGpuHealth, &kData,    &kTrain};
  return kAll;
}

const Check* find_check(std::string_view name) {
  const auto all = checks();
  const auto at = std::ranges::find_if(all, [&](const Check* check) { return check->name == name; });
  return at == all.end() ? nullptr : *at;
}

}  // namespace polyring
