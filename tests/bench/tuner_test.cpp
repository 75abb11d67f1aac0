// Run under mpirun with any number of ranks: what the tuner finds among allreduces that sleep for as long as
// their plan deserves, and err on purpose. Prints one line per failure and a summary on rank 0.
#include "bench/tuner.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "collectives/baselines/mpi.hpp"
#include "collectives/transports/mpi.hpp"

namespace polyring {
namespace {

constexpr Count kCount = 64 << 10;
constexpr std::size_t kBytes = kCount * sizeof(float);
const Plan kDefault{"multi-ring", {4}, {"ring"}, 1, {}};
const Plan kGrid{"multi-ring", {2, 2}, {"ring", "ring"}, 1, {}};

/// The right result, after a while.
class Slowed final : public Allreduce {
 public:
  Slowed(const MpiWorld& world, std::chrono::microseconds delay, Count spoiled)
      : honest_(make_mpi_allreduce(world, ElementKind::float32, ReduceOp::sum, kCount)),
        delay_(delay),
        spoiled_(spoiled) {}
  std::string algorithm() const override { return "slowed"; }
  std::string implementation() const override { return "test"; }
  bool keeps_time_limit() const override { return false; }
  void run(const std::byte* input, std::byte* output) override {
    honest_->run(input, output);
    std::memset(output, 0xff, static_cast<std::size_t>(spoiled_) * sizeof(float));
    std::this_thread::sleep_for(delay_);
  }

 private:
  std::unique_ptr<Allreduce> honest_;
  std::chrono::microseconds delay_;
  Count spoiled_;
};

class TunerTest {
 public:
  explicit TunerTest(const MpiWorld& world)
      : world_(world),
        transport_(make_mpi_transport(world)),
        watchdog_(fmt::format("rank {}", world.rank()), Seconds{60},
                  [&world](int code) { world.abort(code); }),
        input_(transport_->allocate(Bytes{kBytes})),
        output_(transport_->allocate(Bytes{kBytes})) {}

  /// Each of its features saves 10 ms; the search must pass from one to the next.
  void the_fastest_is_found() {
    const auto result = tune([](const Plan& plan) {
      int ms = 60;
      if (plan.dims.size() == 2) ms -= 10;
      if (plan.patterns.front() == "direct") ms -= 10;
      if (plan.patterns.back() == "direct") ms -= 10;
      if (plan.lanes == 2) ms -= 10;
      if (plan.chunk == Bytes{64 << 10}) ms -= 10;
      return ms;
    });
    const Plan best{"multi-ring", {2, 2}, {"direct", "direct"}, 2, {64 << 10}};
    expect(result && result->challenger == best,
           fmt::format("chose {}", result ? to_text(result->challenger) : "nothing"));
    expect(result && result->better(), "a plan of a sixth of the time is not better");
    expect(result && result->default_us > 60e3 && result->challenger_us < 40e3, "times are of other plans");
  }

  void the_default_is_not_beaten_by_what_is_slower() {
    const auto result = tune([](const Plan& plan) { return plan == kDefault ? 0 : 5; });
    expect(result && !result->better(), "a slower plan is better than the default");
    expect(result && result->challenger != kDefault, "the default is its own rival");
  }

  void wrong_results_are_told() {
    Tuner tuner = make_tuner();
    const auto result = tuner.tune(kCount, {kDefault, kGrid}, [&](const Plan& plan) {
      return rival(plan == kGrid ? 0 : 5, plan == kGrid ? 3 : 0);
    });
    expect(!result, "a plan is chosen although one was wrong");
    expect(tuner.wrong().size() == 1 && tuner.wrong().front().find("2x2") != std::string::npos,
           "the wrong plan is not named");
  }

  int failures() const { return static_cast<int>(world_.sum(failures_)); }

 private:
  Tuner make_tuner() {
    return {world_, *transport_, watchdog_, 7, [](const std::string&) {}};
  }

  Rival rival(int ms, Count spoiled) const {
    return {"slowed",
            {},
            std::make_unique<Slowed>(world_, std::chrono::milliseconds(ms), spoiled),
            Buffers{input_.get(), output_.get()}};
  }

  std::optional<TunerResult> tune(const std::function<int(const Plan&)>& ms) {
    return make_tuner().tune(kCount, {kDefault, kGrid}, [&](const Plan& plan) { return rival(ms(plan), 0); });
  }

  void expect(bool truth, const std::string& otherwise) {
    if (truth) return;
    ++failures_;
    fmt::print("rank {}: {}\n", world_.rank(), otherwise);
  }

  const MpiWorld& world_;
  std::unique_ptr<Transport> transport_;
  Watchdog watchdog_;
  Memory input_;
  Memory output_;
  int failures_ = 0;
};

}  // namespace
}  // namespace polyring

int main() {
  polyring::MpiWorld world;
  polyring::TunerTest test(world);
  test.the_fastest_is_found();
  test.the_default_is_not_beaten_by_what_is_slower();
  test.wrong_results_are_told();
  const int failures = test.failures();
  if (world.rank() == 0) fmt::print("{} failures\n", failures);
  return failures == 0 ? 0 : 1;
}
