// Devices of one host that lag behind others like them. Hosts that are equal show no difference to each
// other, and all may have the same fault.
#pragma once

#include <string>
#include <vector>

#include "topology/machine.hpp"

namespace polyring::probe {

struct OddOne {
  std::string device;   // "gpu3"
  std::string remark;   // a sentence about it
  bool is_link = true;  // that is slow; false: something is missing
};

/// GPUs whose PCIe link carries less than those of most GPUs of their model; NICs whose ports carry less than
/// those of most NICs of their model and kind; GPUs that have no NIC below their PCIe switches where most
/// have. Of fewer than three nobody is odd, and odd are at most a quarter, or one.
std::vector<OddOne> odd_ones(const Machine& machine);

}  // namespace polyring::probe
