#include "bench/contenders/gpu_calls.hpp"

#include <utility>

namespace polyring {
namespace {

class EnqueuedCall final : public CollectiveCall {
 public:
  EnqueuedCall(std::string algorithm, std::string implementation, std::unique_ptr<GpuCollective> collective)
      : algorithm_(std::move(algorithm)),
        implementation_(std::move(implementation)),
        collective_(std::move(collective)) {}

  std::string algorithm() const override { return algorithm_; }
  std::string implementation() const override { return implementation_; }
  // CUDA's calls wait where a GPU has too much to do already, and NCCL's first ones connect the ranks.
  bool keeps_time_limit() const override { return false; }
  void run(const std::byte* input, std::byte* output) override {
    start(input, output);
    finish();
  }
  void start(const std::byte* input, std::byte* output) override { collective_->start(input, output); }
  void finish() override { collective_->wait(); }
  std::unique_ptr<GpuGraph> capture(int calls, const std::byte* input, std::byte* output) override {
    return collective_->capture(calls, input, output);
  }
  bool is_enqueued() const override { return true; }
  void start_on(void* stream, const std::byte* input, std::byte* output) override {
    collective_->start_on(stream, input, output);
  }
  std::optional<double> device_us() const override { return collective_->last_us(); }

 private:
  std::string algorithm_;
  std::string implementation_;
  std::unique_ptr<GpuCollective> collective_;
};

}  // namespace

std::unique_ptr<CollectiveCall> make_enqueued_call(std::string algorithm, std::string implementation,
                                                   std::unique_ptr<GpuCollective> collective) {
  return std::make_unique<EnqueuedCall>(std::move(algorithm), std::move(implementation),
                                        std::move(collective));
}

}  // namespace polyring
