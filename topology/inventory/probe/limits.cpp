#include "topology/inventory/probe/limits.hpp"

#include "base/error.hpp"

namespace polyring::probe {

void check_counts(const Machine& machine, std::string_view origin, std::string_view remedy) {
  constexpr std::size_t kMostGpus = 256;
  constexpr std::size_t kMostOthers = 1024;
  const auto check = [&](std::size_t count, std::size_t most, const char* what) {
    if (count > most)
      usage_error("'{}' has {} {}, but no host has more than {}; {}", origin, count, what, most, remedy);
  };
  check(machine.packages.size(), kMostOthers, "packages");
  check(machine.gpus.size(), kMostGpus, "GPUs");
  check(machine.nics.size(), kMostOthers, "NICs");
  check(machine.switches.size(), kMostOthers, "PCIe switches");
}

}  // namespace polyring::probe
