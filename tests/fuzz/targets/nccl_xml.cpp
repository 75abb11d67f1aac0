// The topology XML of NCCL and RCCL.
#include "topology/inventory/formats/nccl_xml.hpp"

#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace polyring;
  fuzz::may_refuse([&] { fuzz::use(parse_nccl_xml(fuzz::text_of(data, size), "fuzz.xml")); });
  return 0;
}
