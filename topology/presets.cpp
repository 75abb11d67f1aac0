#include "topology/presets.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/error.hpp"
#include "base/names.hpp"
#include "base/text.hpp"
#include "topology/presets/catalogue.hpp"

namespace polyring {
namespace {

struct Row {
  std::string_view name;
  presets::Preset (*make)();
};

constexpr std::array kCatalogue{
    Row{"minsky", presets::minsky},
    Row{"ac922", presets::ac922},
    Row{"summit", presets::summit},
    Row{"dgx1-p100", presets::dgx1_p100},
    Row{"dgx1-v100", presets::dgx1_v100},
    Row{"big-basin", presets::big_basin},
    Row{"dgx-a100", presets::dgx_a100},
    Row{"dgx-h100", presets::dgx_h100},
    Row{"ethernet", presets::ethernet},
    Row{"p100-roce", presets::p100_roce},
    Row{"v100-roce", presets::v100_roce},
    Row{"dgx-h200", presets::dgx_h200},
    Row{"dgx-b200", presets::dgx_b200},
    Row{"gb200-nvl72", presets::gb200_nvl72},
    Row{"gh200", presets::gh200},
    Row{"gh200-quad", presets::gh200_quad},
    Row{"mi300x", presets::mi300x},
    Row{"aws-p4d", presets::aws_p4d},
    Row{"aws-p5", presets::aws_p5},
    Row{"azure-nd-h100-v5", presets::azure_nd_h100_v5},
    Row{"gcp-a3-mega", presets::gcp_a3_mega},
};

}  // namespace

std::vector<std::string_view> preset_names() {
  std::vector<std::string_view> names;
  for (const Row& row : kCatalogue) names.push_back(row.name);
  return names;
}

Cluster preset(std::string_view name, int hosts) {
  const auto row = std::ranges::find(kCatalogue, name, &Row::name);
  if (row == kCatalogue.end()) {
    throw Error(ExitCode::usage, unknown_name("machine", name, strings(preset_names())));
  }
  if (hosts < 1) usage_error("{} hosts of machine '{}'; give 1 or more", hosts, name);
  auto [machine, fabric] = row->make();
  machine.name = name;
  Cluster cluster;
  cluster.name = name;
  cluster.groups = {{std::move(machine), hosts}};
  cluster.fabric = std::move(fabric);
  return cluster;
}

}  // namespace polyring
