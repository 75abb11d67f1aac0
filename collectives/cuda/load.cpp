#include "collectives/cuda/load.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/index.hpp"
#include "collectives/cuda/cublas.hpp"
#include "collectives/cuda/devices.hpp"
#include "collectives/cuda/kernels.hpp"
#include "collectives/cuda/owners.hpp"
#include "collectives/cuda/poll.hpp"

namespace polyring::cuda {
namespace {

constexpr int kTries = 5;
constexpr double kLeast = 1e-6;         // seconds: events tell no less
constexpr std::size_t kSome = 1 << 20;  // bytes

class Product final : public Load {
 public:
  Product(RankGpu& gpu, std::shared_ptr<Cublas> cublas, int side, cudaStream_t stream)
      : cublas_(std::move(cublas)), side_(side), matrices_(gpu.allocate(Bytes{3 * bytes()})) {
    fill(gpu, stream);
  }

  std::string way() const override {
    return fmt::format("products of {0} x {0} matrices of float16 by cuBLAS {1}", side_, cublas_->version());
  }
  void launch(cudaStream_t stream) override {
    std::byte* const a = matrices_.get();
    cublas_->multiply({.side = side_}, a, a + bytes(), a + 2 * bytes(), stream);
  }

 private:
  std::size_t bytes() const { return sizeof(std::uint16_t) * index(side_) * index(side_); }

  /// With numbers of both signs, from 1/16 to 1: a GPU takes more power, and so more time, for what looks
  /// like data than for zeros.
  void fill(RankGpu& gpu, cudaStream_t stream) {
    const Memory some = pinned_memory(Bytes{kSome});
    std::minstd_rand random(1);  // NOLINT(cert-msc51-cpp): the same on all ranks
    for (std::size_t at = 0; at < kSome; at += sizeof(std::uint16_t)) {
      const auto bits = static_cast<std::uint32_t>(random() >> 4);
      const auto half = static_cast<std::uint16_t>((bits & 0x83ffU) | ((11U + (bits >> 10 & 3U)) << 10));
      std::memcpy(some.get() + at, &half, sizeof half);
    }
    for (std::size_t at = 0; at < 2 * bytes(); at += kSome) {
      check(cudaMemcpyAsync(matrices_.get() + at, some.get(), std::min(kSome, 2 * bytes() - at),
                            cudaMemcpyDefault, stream),
            "copy to the GPU (cudaMemcpyAsync)");
    }
    const Event filled = make_event();
    check(cudaEventRecord(filled.get(), stream), "record an event (cudaEventRecord)");
    wait(gpu, filled.get(), gpu.rules().timeout);
  }

  std::shared_ptr<Cublas> cublas_;
  int side_;
  Memory matrices_;
};

class Loop final : public Load {
 public:
  Loop(RankGpu& gpu, std::int64_t turns, std::string why)
      : result_(gpu.allocate(Bytes{sizeof(float)})),
        turns_(turns),
        blocks_(multiprocessors(gpu.device())),
        why_(std::move(why)) {}

  std::string way() const override {
    return fmt::format("a loop of arithmetic on all multiprocessors, since {}", why_);
  }
  void launch(cudaStream_t stream) override {
    launch_work(reinterpret_cast<float*>(result_.get()), turns_, blocks_, stream);
  }

 private:
  Memory result_;
  std::int64_t turns_;
  int blocks_;
  std::string why_;
};

/// The largest matrices whose product does not take longer.
std::unique_ptr<Load> make_product(RankGpu& gpu, std::shared_ptr<Cublas> cublas, cudaStream_t stream,
                                   Seconds wanted) {
  std::unique_ptr<Load> made;
  for (const int side : {512, 1024, 2048, 4096, 8192}) {
    auto larger = std::make_unique<Product>(gpu, cublas, side, stream);
    if (made && time_of(*larger, gpu, stream, 1) > wanted) break;
    made = std::move(larger);
  }
  return made;
}

std::unique_ptr<Load> make_loop(RankGpu& gpu, cudaStream_t stream, Seconds wanted, const std::string& why) {
  constexpr std::int64_t kMost = std::int64_t{1} << 30;
  std::int64_t turns = 1;
  for (;;) {
    auto made = std::make_unique<Loop>(gpu, turns, why);
    const Seconds time = time_of(*made, gpu, stream, 1);
    if (2 * time >= wanted || turns >= kMost) return made;
    turns *= 2;
  }
}

}  // namespace

void wait(RankGpu& gpu, cudaEvent_t event, Seconds limit) {
  try {
    const auto over = [event] {
      return is_over(cudaEventQuery(event), "finish what it was given (cudaEventQuery)");
    };
    if (over_within(limit, gpu.rules().yields, over)) return;
    throw Error(ExitCode::timeout,
                fmt::format("GPU {} of rank {} has not finished its part of a training step within {}",
                            gpu.device(), gpu.rank(), to_text(limit)));
  } catch (const Error&) {
    gpu.break_off();
    throw;
  }
}

Seconds time_of(Load& load, RankGpu& gpu, cudaStream_t stream, int launches) {
  const Event begin = make_timed_event();
  const Event end = make_timed_event();
  std::vector<double> tries;
  load.launch(stream);
  for (int i = 0; i < kTries; ++i) {
    check(cudaEventRecord(begin.get(), stream), "record an event (cudaEventRecord)");
    for (int launch = 0; launch < launches; ++launch) load.launch(stream);
    check(cudaEventRecord(end.get(), stream), "record an event (cudaEventRecord)");
    wait(gpu, end.get(), gpu.rules().timeout);
    tries.push_back(1e-6 * microseconds_between(begin.get(), end.get()) / launches);
  }
  std::ranges::sort(tries);
  return {std::max(tries[kTries / 2], kLeast)};
}

std::unique_ptr<Load> make_load(RankGpu& gpu, cudaStream_t stream, Seconds wanted) {
  std::string why_not;
  if (std::shared_ptr<Cublas> cublas = Cublas::open(why_not))
    return make_product(gpu, std::move(cublas), stream, wanted);
  return make_loop(gpu, stream, wanted, why_not);
}

}  // namespace polyring::cuda
