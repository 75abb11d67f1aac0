// Sizes, bandwidths and times as people write them.
#include "base/units.hpp"

#include <cmath>

#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace polyring;
  const std::string_view text = fuzz::text_of(data, size).substr(0, 500);
  if (text.find('\n') != std::string_view::npos) return 0;  // it is quoted in the error
  fuzz::may_refuse([&] {
    const Bytes bytes = parse_bytes(text, "size");
    fuzz::expect(parse_bytes(to_text(bytes), "size") == bytes, "bytes that are not read as written");
  });
  fuzz::may_refuse([&] {
    const Bandwidth bandwidth = parse_bandwidth(text, "bandwidth");
    fuzz::expect(bandwidth.known() && std::isfinite(bandwidth.value), "a bandwidth that is none");
    to_text(bandwidth);
  });
  fuzz::may_refuse([&] {
    const Seconds seconds = parse_seconds(text, "time");
    fuzz::expect(seconds.value >= 0 && std::isfinite(seconds.value), "a time that is none");
    to_text(seconds);
  });
  return 0;
}
