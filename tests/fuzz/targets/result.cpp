// Result files, which the tables and charts are made from.
#include "reports/result_text.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace polyring;
  fuzz::may_refuse([&] { parse_result(std::string(fuzz::text_of(data, size)), "fuzz.json"); });
  return 0;
}
