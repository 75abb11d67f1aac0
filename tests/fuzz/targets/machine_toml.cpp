// Machines that are described in TOML.
#include "topology/inventory/formats/machine_toml.hpp"

#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace polyring;
  fuzz::may_refuse([&] {
    const Cluster cluster = parse_machine_toml(fuzz::text_of(data, size), "fuzz.toml");
    for (const Link& link : cluster.host(0).links)
      fuzz::expect(link.bandwidth.known() && link.latency.value > 0, "a link that is unknown");
    fuzz::expect(!cluster.host(0).citations.empty(), "nobody says where the numbers are from");
    fuzz::use(cluster);
  });
  return 0;
}
