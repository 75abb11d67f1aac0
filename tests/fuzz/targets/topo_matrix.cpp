// What `nvidia-smi topo -m` prints.
#include "tests/fuzz/fuzz.hpp"
#include "topology/inventory/formats/nvidia_smi.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace polyring;
  const std::string_view text = fuzz::text_of(data, size);
  is_topo_matrix(text);
  fuzz::may_refuse([&] { fuzz::use(cluster_of(parse_topo_matrix(text, "fuzz.txt"), 1)); });
  return 0;
}
