#include "bench/contenders/staged_call.hpp"

#include <functional>
#include <utility>

#include "collectives/schedule/schedule.hpp"

namespace polyring {
namespace {

class StagedCall final : public CollectiveCall {
 public:
  StagedCall(std::unique_ptr<CollectiveCall> call, Transport& transport, const CollectiveOf& what)
      : call_(std::move(call)),
        transport_(transport),
        input_bytes_(bytes_of(input_count(what.collective, transport.size(), what.count), what.kind).value),
        output_bytes_(bytes_of(output_count(what.collective, transport.size(), what.count), what.kind).value),
        input_(transport.host({input_bytes_})),
        output_(transport.host({output_bytes_})) {}

  std::string algorithm() const override { return call_->algorithm(); }
  std::string implementation() const override {
    return call_->implementation() + ", copied to the host and back";
  }
  bool keeps_time_limit() const override { return call_->keeps_time_limit(); }

  void run(const std::byte* input, std::byte* output) override {
    std::byte* const host_input =
        lies_in(input, output, output_bytes_) ? output_.get() + (input - output) : input_.get();
    std::byte* const host_output = lies_in(output, input, input_bytes_) && output_bytes_ < input_bytes_
                                       ? input_.get() + (output - input)
                                       : output_.get();
    transport_.download({host_input, input_bytes_}, input);
    call_->run(host_input, host_output);
    transport_.upload(output, {host_output, output_bytes_});
  }

 private:
  static bool lies_in(const std::byte* data, const std::byte* whole, std::size_t bytes) {
    return !std::less<>()(data, whole) && std::less<>()(data, whole + bytes);
  }

  std::unique_ptr<CollectiveCall> call_;
  Transport& transport_;
  std::size_t input_bytes_;
  std::size_t output_bytes_;
  Memory input_;
  Memory output_;
};

class UnstagedCall final : public CollectiveCall {
 public:
  explicit UnstagedCall(std::unique_ptr<CollectiveCall> call) : call_(std::move(call)) {}

  std::string algorithm() const override { return call_->algorithm(); }
  std::string implementation() const override { return call_->implementation() + ", on GPU memory"; }
  bool keeps_time_limit() const override { return call_->keeps_time_limit(); }
  void run(const std::byte* input, std::byte* output) override { call_->run(input, output); }

 private:
  std::unique_ptr<CollectiveCall> call_;
};

}  // namespace

std::unique_ptr<CollectiveCall> make_unstaged(std::unique_ptr<CollectiveCall> call) {
  return std::make_unique<UnstagedCall>(std::move(call));
}

std::unique_ptr<CollectiveCall> make_staged(std::unique_ptr<CollectiveCall> call, Transport& transport,
                                            const CollectiveOf& what) {
  return std::make_unique<StagedCall>(std::move(call), transport, what);
}

}  // namespace polyring
