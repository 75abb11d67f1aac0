// The file of `polyring calibrate`.
#include "bench/record/calibration_file.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace polyring;
  fuzz::may_refuse([&] {
    const CalibrationRecord record = parse_calibration(std::string(fuzz::text_of(data, size)), "fuzz.json");
    parse_calibration(calibration_text(record), "written.json");
    note_of(record);
  });
  return 0;
}
