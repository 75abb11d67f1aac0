// hwloc's XML: hwloc itself tries it in a child process, so that this is slow.
#include "tests/fuzz/fuzz.hpp"
#include "topology/inventory/probe.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace polyring;
  fuzz::may_refuse([&] { fuzz::use(cluster_of(parse_hwloc_xml(fuzz::text_of(data, size), "fuzz.xml"), 1)); });
  return 0;
}
