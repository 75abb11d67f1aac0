// What ibnetdiscover prints.
#include "topology/inventory/formats/ibnetdiscover.hpp"

#include "tests/fuzz/fuzz.hpp"
#include "topology/inventory/formats/fabric_json.hpp"
#include "topology/inventory/formats/fabric_text.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace polyring;
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::may_refuse([&] {
    const FabricMap map = parse_ibnetdiscover(text, "fuzz.out");
    fabric_text(map);
    fabric_json(map);
  });
  return 0;
}
