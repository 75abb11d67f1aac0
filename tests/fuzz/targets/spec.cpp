// The specification of `polyring accept`.
#include "bench/accept/spec.hpp"

#include <array>
#include <cmath>

#include "tests/fuzz/fuzz.hpp"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace polyring;
  static const Check kAll{"all.allreduce", "", nullptr, {{"busbw", "GB/s"}}, nullptr};
  static const Check kHost{"host.allreduce", "", nullptr, {{"busbw", "GB/s"}, {"latency", "us"}}, nullptr};
  static const Check kRanks{"stragglers", "", nullptr, {{"time/median rank's", "", true}}, nullptr};
  static const Check kPlain{"correct", "", nullptr, {}, nullptr};
  static constexpr std::array<const Check*, 4> kKnown{&kAll, &kHost, &kRanks, &kPlain};
  fuzz::may_refuse([&] {
    const Specification spec = parse_spec(fuzz::text_of(data, size), "fuzz.toml", kKnown);
    fuzz::expect(!spec.checks.empty() || !spec.references.empty(), "a specification of nothing");
    for (const Reference& one : spec.references) {
      const auto& [least, most, source] = one.threshold;
      fuzz::expect(least || most, "a threshold that cannot fail");
      fuzz::expect(!least || (std::isfinite(*least) && *least > 0), "a lower limit that everything passes");
      fuzz::expect(!most || (std::isfinite(*most) && *most >= 0), "an upper limit that nothing passes");
      fuzz::expect(spec.of({one.check, one.quantity, one.size_bytes, one.subject}).has_value(),
                   "a reference that is not found");
    }
    spec.unmet({});
  });
  return 0;
}
