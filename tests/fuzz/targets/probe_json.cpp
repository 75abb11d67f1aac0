// The JSON of `polyring probe`.
#include "topology/inventory/formats/probe_json.hpp"

#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace polyring;
  fuzz::may_refuse([&] { fuzz::use(parse_probe_json(fuzz::text_of(data, size), "fuzz.json")); });
  return 0;
}
