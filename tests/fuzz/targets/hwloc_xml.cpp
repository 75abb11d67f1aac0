// hwloc's XML: hwloc itself tries it in a child process, so that this is slow.
#include "tests/fuzz/fuzz.hpp"
#include "topology/inventory/probe.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace polyring;
  constexpr Seconds kLimit{5};  // far from libFuzzer's: hwloc does not end on every file
  fuzz::may_refuse(
      [&] { fuzz::use(cluster_of(parse_hwloc_xml(fuzz::text_of(data, size), "fuzz.xml", kLimit), 1)); });
  return 0;
}
