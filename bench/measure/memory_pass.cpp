#include "bench/measure/memory_pass.hpp"

#include <algorithm>
#include <array>

#include "collectives/runtime/kernels.hpp"

namespace polyring {
namespace {

class MemoryPass final : public CollectiveCall {
 public:
  MemoryPass(ElementKind kind, Count count, Stores stores) : kind_(kind), count_(count), stores_(stores) {}

  std::string algorithm() const override { return "memory pass"; }
  std::string implementation() const override { return "polyring"; }
  bool keeps_time_limit() const override { return true; }

  /// Both halves at a time, as an allreduce of two ranks does: processors fetch several streams ahead better
  /// than one.
  void run(const std::byte* input, std::byte* output) override {
    const auto second = static_cast<std::size_t>((count_ - count_ / 2) * size_of(kind_));
    combine_many({kind_}, std::array{output, output + second}, std::array{input, input + second}, count_ / 2,
                 stores_);
  }

 private:
  ElementKind kind_;
  Count count_;
  Stores stores_;
};

}  // namespace

std::vector<Contender> make_memory_passes(ElementKind kind, Count count, Buffers buffers) {
  std::vector<Contender> passes;
  for (const Stores stores : {Stores::cached, Stores::streaming}) {
    passes.push_back({"memory pass", {}, std::make_unique<MemoryPass>(kind, count, stores), buffers, false});
  }
  return passes;
}

Timing fastest(std::span<const Samples> of_passes) {
  std::vector<Timing> timings;
  for (const Samples& samples : of_passes) timings.push_back(timing(samples.microseconds));
  return *std::ranges::min_element(timings, {}, &Timing::median);
}

}  // namespace polyring
