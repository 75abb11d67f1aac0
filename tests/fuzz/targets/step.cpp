// The file of scripts/measure_step.
#include "bench/record/step_file.hpp"
#include "models/buckets.hpp"
#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace polyring;
  fuzz::may_refuse([&] {
    const MeasuredStep step = parse_step(std::string(fuzz::text_of(data, size)), "fuzz.json");
    source_of(step);
    const Model model = model_of(step);
    check_model(step, model);
    for (const Bucket& bucket : make_buckets(model, {BucketPolicy::Kind::per_tensor, {}}, 4))
      fuzz::expect(bucket.ready >= 0 && bucket.ready <= 1 + 1e-9,
                   "a bucket that is ready outside of the pass");
    fuzz::may_refuse([&] { with_measured_times(make_model("vgg16"), step); });
  });
  return 0;
}
