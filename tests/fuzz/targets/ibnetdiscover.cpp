// What ibnetdiscover prints.
#include "topology/formats/ibnetdiscover.hpp"

#include "tests/fuzz/fuzz.hpp"
#include "topology/formats/fabric_text.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace polyring;
  const std::string_view text = fuzz::text_of(data, size);
  fuzz::may_refuse([&] { fabric_text(parse_ibnetdiscover(text, "fuzz.out")); });
  return 0;
}
