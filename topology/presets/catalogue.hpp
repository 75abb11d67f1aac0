// The rows of the catalogue: one function per machine, which builds it with its citations.
#pragma once

#include "topology/cluster.hpp"

namespace polyring::presets {

/// One host and the fabric that such hosts usually hang on.
struct Preset {
  Machine machine;
  Fabric fabric;
};

Preset minsky();
Preset ac922();
Preset summit();
Preset dgx1_p100();
Preset dgx1_v100();
Preset dgx_a100();
Preset dgx_h100();
Preset big_basin();
Preset ethernet();

}  // namespace polyring::presets
