// What tells two hosts apart that should be equal, in the words of a colleague who looked at both.
//
// Not compared is what naturally differs: names of hosts, addresses on buses and networks, GUIDs, serial
// numbers, and what a probe noted about itself. Sizes and speeds that differ by less than a tolerance are
// taken as equal: firmware keeps a page more here and there, and rates are rounded.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "topology/machine.hpp"

namespace polyring {

/// One difference of a host from the usual one.
struct Difference {
  enum class Kind {
    has,  // "3 GPUs, not 4", after "node07 has"
    own,  // "mlx5_1 is down", after "node07's"
  };
  Kind kind = Kind::has;
  std::string text;
  /// The device or devices whose link or port is slower than the usual one's, down or missing, or which are
  /// missing themselves; empty: it is something else.
  std::string link_of{};
  auto operator<=>(const Difference&) const = default;
};

/// The difference as a sentence about these hosts, one or several: "node07's mlx5_1 is down".
std::string sentence(const Difference& difference, std::span<const std::string> hosts);

/// Of sizes and speeds, as a part of the usual one: far less than any part of a host that may be missing.
inline constexpr double kUsualTolerance = 0.01;

/// What a host has that the usual one has not, or the other way round; nothing when they are equal.
std::vector<Difference> differences(const Machine& usual, const Machine& other,
                                    double tolerance = kUsualTolerance);

/// All that is compared, as text: two machines with the same text have no difference at any tolerance.
std::string normal_form(const Machine& machine);

}  // namespace polyring
