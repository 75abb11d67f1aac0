#include "collectives/cuda/compute.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>
#include <vector>

#include "collectives/cuda/load.hpp"
#include "collectives/cuda/owners.hpp"

namespace polyring::cuda {
namespace {

/// A step has this many launches, unless they would be shorter than kShortest or longer than kLongest: CUDA
/// takes about a thousand before it makes the host wait.
constexpr double kLaunches = 500;
constexpr Seconds kShortest{100e-6};
constexpr Seconds kLongest{10e-3};
/// Of a try of how long a launch takes, if the step is not shorter.
constexpr Seconds kTry{0.1};

class Compute final : public GpuCompute {
 public:
  Compute(RankGpu& gpu, Seconds step)
      : gpu_(gpu),
        computing_(make_stream()),
        communicating_(make_stream()),
        load_(make_load(gpu, computing_.get(),
                        std::clamp(Seconds{step.value / kLaunches}, kShortest, kLongest))),
        unit_(time_of(*load_, gpu, computing_.get(), 1)) {
    // In a row, as in a step.
    const double launches = std::min(step, kTry).value / unit_.value;
    unit_ = time_of(*load_, gpu, computing_.get(), std::max(1, static_cast<int>(launches)));
  }
  /// After a failure something may be under way that never ends, for which cuBLAS's end would wait.
  ~Compute() override {
    cudaSetDevice(gpu_.device());
    if (cudaStreamQuery(computing_.get()) == cudaSuccess) return;
    cudaGetLastError();
    static_cast<void>(load_.release());
  }
  Compute(const Compute&) = delete;
  Compute& operator=(const Compute&) = delete;

  std::string way() const override { return load_->way(); }

  void begin() override {
    use();
    used_ = 0;
    launched_ = 0;
    gpu_.activities().clear();
    Compute::mark(Stream::computing);
  }
  void compute_until(Seconds computed) override {
    use();
    const std::int64_t until = std::llround(computed.value / unit_.value);
    for (; launched_ < until; ++launched_) load_->launch(computing_.get());
  }
  std::uint64_t launches() const override { return static_cast<std::uint64_t>(launched_); }
  Moment mark(Stream stream) override {
    use();
    if (used_ == moments_.size()) moments_.push_back(make_timed_event());
    check(cudaEventRecord(moments_[used_].get(), of(stream)), "record an event (cudaEventRecord)");
    return used_++;
  }
  void order(Moment moment, Stream stream) override {
    use();
    check(cudaStreamWaitEvent(of(stream), event(moment), 0), "wait for another stream (cudaStreamWaitEvent)");
  }
  void* communicating() override { return communicating_.get(); }
  void wait(Moment moment, Seconds limit) override {
    use();
    cuda::wait(gpu_, event(moment), limit);
  }
  Seconds at(Moment moment) override {
    use();
    return {1e-6 * microseconds_between(event(0), event(moment))};
  }

  void record(bool on) override { gpu_.activities().record(on); }
  std::vector<GpuActivity> activities() override {
    use();
    return gpu_.activities().take(event(0));
  }

 private:
  void use() const { check(cudaSetDevice(gpu_.device()), "use a GPU (cudaSetDevice)"); }
  cudaStream_t of(Stream stream) const {
    return stream == Stream::computing ? computing_.get() : communicating_.get();
  }
  cudaEvent_t event(Moment moment) const {
    assert(moment < used_);
    return moments_[moment].get();
  }

  RankGpu& gpu_;
  cuda::Stream computing_;
  cuda::Stream communicating_;
  std::unique_ptr<Load> load_;
  Seconds unit_;  // of one launch
  std::int64_t launched_ = 0;
  std::vector<Event> moments_;
  std::size_t used_ = 0;
};

}  // namespace

std::unique_ptr<GpuCompute> make_gpu_compute(Transport& transport, Seconds step) {
  auto* const gpu = dynamic_cast<RankGpu*>(&transport);
  assert(gpu != nullptr);
  check(cudaSetDevice(gpu->device()), "use a GPU (cudaSetDevice)");
  return std::make_unique<Compute>(*gpu, step);
}

}  // namespace polyring::cuda
