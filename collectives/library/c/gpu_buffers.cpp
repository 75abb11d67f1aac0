#include "collectives/library/c/gpu_buffers.hpp"

#include "base/error.hpp"

namespace polyring::library {

bool is_reached(int gpu, std::span<const std::byte> bytes, std::string_view what) {
  if (bytes.empty()) return true;
  const GpuAddress address = need_gpu_plugin().locate(bytes.data());
  if (address.gpu == kHostMemory)
    usage_error("{} is in host memory, and this communicator's buffers are on GPU {}; copy it there", what,
                gpu);
  if (address.gpu != gpu)
    usage_error("{} is on GPU {}, and this communicator's buffers are on GPU {}; copy it there", what,
                address.gpu, gpu);
  if (address.allocated == Bytes{}) return false;
  if (address.allocated.value < bytes.size())
    usage_error("{} has {} bytes, and only {} were allocated there; allocate more, or give fewer elements",
                what, bytes.size(), address.allocated.value);
  return true;
}

GpuBuffers::GpuBuffers(const Communicator& communicator, int gpu, std::span<const std::byte> input,
                       std::span<std::byte> output)
    : transport_(communicator.transport()), input_(input.data()), output_(output.data()) {
  const bool in_place = input.data() == output.data() && input.size() == output.size();
  if (!is_reached(gpu, output, "the output")) {
    result_ = output;
    copies_[0] = communicator.allocate({output.size()});
    output_ = copies_[0].get();
  }
  if (is_reached(gpu, input, "the input")) return;
  if (!in_place) copies_[1] = communicator.allocate({input.size()});
  std::byte* const copy = copies_[in_place ? 0 : 1].get();
  need_gpu_plugin().copy(transport_, copy, input);
  input_ = copy;
}

void GpuBuffers::finish() const {
  if (!result_.empty()) need_gpu_plugin().copy(transport_, result_.data(), {output_, result_.size()});
}

}  // namespace polyring::library
