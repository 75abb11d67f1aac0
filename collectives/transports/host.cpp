#include <algorithm>
#include <cstring>
#include <new>

#include "collectives/kernels.hpp"
#include "collectives/transport.hpp"
#include "topology/error.hpp"

namespace polyring {

Memory HostTransport::allocate(Bytes size) {
  // A page: what shared memory and pinning want, and no two buffers share a cache line.
  constexpr std::align_val_t kAlignment{4096};
  const std::size_t bytes = std::max<std::size_t>(1, size.value);
  auto* address = static_cast<std::byte*>(::operator new(bytes, kAlignment, std::nothrow));
  if (address == nullptr) {
    throw Error(ExitCode::not_available,
                fmt::format("there is no memory for a buffer of {} bytes; use smaller sizes", bytes));
  }
  return {address, [](std::byte* memory) { ::operator delete(memory, kAlignment); }};
}

void HostTransport::upload(std::byte* to, std::span<const std::byte> from) {
  std::memcpy(to, from.data(), from.size());
}

void HostTransport::download(std::span<std::byte> to, const std::byte* from) {
  std::memcpy(to.data(), from, to.size());
}

void HostTransport::copy(std::byte* to, std::span<const std::byte> from, Ticket ticket) {
  std::memcpy(to, from.data(), from.size());
  local_.push_back(ticket);
}

void HostTransport::combine(ElementKind kind, ReduceOp op, std::byte* result, const std::byte* left,
                            const std::byte* right, Count count, Ticket ticket) {
  combine_on_host(kind, op, result, left, right, count);
  local_.push_back(ticket);
}

void HostTransport::divide(ElementKind kind, std::byte* data, Count count, int divisor, Ticket ticket) {
  divide_on_host(kind, data, count, divisor);
  local_.push_back(ticket);
}

bool HostTransport::take_local(std::vector<Ticket>& done) {
  done.insert(done.end(), local_.begin(), local_.end());
  const bool any = !local_.empty();
  local_.clear();
  return any;
}

}  // namespace polyring
