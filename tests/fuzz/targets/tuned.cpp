// The file of `polyring tune`.
#include "bench/plans/tuned_file.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace polyring;
  fuzz::may_refuse([&] {
    const auto choices = parse_tuned(std::string(fuzz::text_of(data, size)), "fuzz.json");
    fuzz::expect(parse_tuned(tuned_text(choices), "written.json") == choices,
                 "choices that are not read as written");
  });
  return 0;
}
