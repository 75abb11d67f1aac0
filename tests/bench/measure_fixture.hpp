// What tests of measuring loops share: ranks under mpirun, contenders that do what a test has them do, and a
// clock that a test moves.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/contenders/mpi.hpp"
#include "bench/measure/measure.hpp"
#include "collectives/runtime/transports/mpi.hpp"
#include "tests/mpi_tests.hpp"

namespace polyring {

using Clock = std::chrono::steady_clock;

constexpr Count kCount = 2500;
constexpr ElementKind kKind = ElementKind::float32;
constexpr std::size_t kBytes = kCount * sizeof(float);

/// What is measured with where only times count: each rank moves its own.
inline Clock::time_point test_time;

inline Clock::time_point test_now() { return test_time; }

class Fake final : public CollectiveCall {
 public:
  using Run = std::function<void(const std::byte* input, std::byte* output)>;

  explicit Fake(Run run) : run_(std::move(run)) {}
  std::string algorithm() const override { return "fake"; }
  std::string implementation() const override { return "test"; }
  bool keeps_time_limit() const override { return false; }
  void run(const std::byte* input, std::byte* output) override { run_(input, output); }

 private:
  Run run_;
};

inline Contender contender(std::string name, Fake::Run run) {
  return {std::move(name), {}, std::make_unique<Fake>(std::move(run)), {}};
}

class MeasureTest : public ::testing::Test {
 protected:
  std::vector<Samples> measured(std::vector<Contender>& contenders, MeasureOptions options, bool in_place,
                                Bytes rehearsed = {}) {
    options.rehearsed = rehearsed;
    for (Contender& contender : contenders) contender.buffers = {input_.get(), output_.get()};
    return measure(contenders, job_, {payload_, {.count = kCount}, in_place}, options);
  }

  bool same_everywhere(double value) const {
    const double greatest = world_.max(value);
    const double least = -world_.max(-value);
    return greatest == value && least == value;
  }

  const MpiWorld& world_ = testing::all_ranks();
  std::unique_ptr<Transport> transport_ = make_mpi_transport(world_);
  std::function<void(const std::string&)> abort_ = [this](const std::string& why) {
    fmt::print("rank {}: {}\n", world_.rank(), why);
    world_.abort(1);
  };
  Watchdog watchdog_{Seconds{30}, abort_};
  Job job_{world_, *transport_, watchdog_};
  Payload payload_{kKind, ReduceOp::sum, world_.size()};
  Memory input_ = transport_->allocate(Bytes{kBytes});
  Memory output_ = transport_->allocate(Bytes{kBytes});
  std::unique_ptr<CollectiveCall> honest_ = make_mpi_allreduce(world_, kKind, ReduceOp::sum, kCount);
};

}  // namespace polyring
