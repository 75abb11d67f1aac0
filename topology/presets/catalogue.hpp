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
Preset dgx_h200();
Preset dgx_b200();
Preset gb200_nvl72();
Preset gh200();
Preset gh200_quad();
Preset mi300x();
Preset aws_p4d();
Preset aws_p5();
Preset azure_nd_h100_v5();
Preset gcp_a3_mega();
Preset p100_roce();
Preset v100_roce();

}  // namespace polyring::presets
