#include "tests/fuzz/fuzz.hpp"
#include "topology/inventory/formats/nccl_xml.hpp"
#include "topology/inventory/formats/probe_json.hpp"
#include "topology/inventory/formats/probe_matrix.hpp"
#include "topology/inventory/formats/probe_text.hpp"
#include "topology/inventory/formats/write_nccl_xml.hpp"

namespace polyring::fuzz {

void use(const Cluster& cluster) {
  // A matrix of all paths of a large machine takes longer than fuzzing has.
  for (const HostGroup& group : cluster.groups) {
    if (group.machine.gpus.size() + group.machine.nics.size() > 16) return;
  }
  probe_text(cluster);
  probe_matrix(cluster);
  const std::string json = probe_json(cluster);
  // Names that are no UTF-8 can become the same.
  may_refuse([&] { parse_probe_json(json, "written.json"); });
  may_refuse([&] { parse_nccl_xml(write_nccl_xml(cluster), "written.xml"); });
}

}  // namespace polyring::fuzz
