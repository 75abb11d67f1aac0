// The clocks of the CPUs on which a run's ranks ran.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "reports/result.hpp"

namespace polyring {

/// Of all hosts of a run, in MHz.
struct Clocks {
  double least = 0;
  double most = 0;
  std::string slowest_host{};  // empty where all hosts have the same least

  /// Whether both ends are the same within 2 %: clocks change from moment to moment.
  bool is_like(const Clocks& other) const;
  /// "2300 MHz", "1200 to 2300 MHz, least on node3".
  std::string text() const;
};

/// Nothing where no host tells them.
std::optional<Clocks> clocks_of(std::span<const HostConditions> hosts);

}  // namespace polyring
