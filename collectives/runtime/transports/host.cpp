#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

#include "base/error.hpp"
#include "collectives/runtime/backoff.hpp"
#include "collectives/runtime/kernels.hpp"
#include "collectives/runtime/transport.hpp"

namespace polyring {

std::size_t Exchange::result_bytes(std::size_t of_operands) const {
  if (reduction.kind == reduction.result) return of_operands;  // of what is only handed on, any number
  return of_operands / static_cast<std::size_t>(size_of(reduction.kind)) *
         static_cast<std::size_t>(size_of(reduction.result));
}

bool Exchange::overwrites(std::span<const std::byte> data) const {
  const std::size_t bytes = result_bytes(own.size());
  return result != nullptr && !data.empty() && bytes > 0 && data.data() < result + bytes &&
         result < data.data() + data.size();
}

void Transport::exchange(const Exchange&, Ticket) { assert(false && "nobody can be reached here"); }

namespace {
constexpr const char* kSameOrder = "have all ranks start the same collectives in the same order";
}

void check_length(Rank peer, std::uint64_t expected, std::uint64_t bytes) {
  if (bytes == expected) return;
  throw Error(ExitCode::wrong_result, fmt::format("rank {} sends {} bytes where {} are expected; {}", peer,
                                                  bytes, expected, kSameOrder));
}

void fail_by_mismatch(Rank peer) {
  throw Error(ExitCode::wrong_result,
              fmt::format("rank {} does something else than this rank; {}", peer, kSameOrder));
}

Memory host_memory(Bytes size) {
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

Memory HostTransport::allocate(Bytes size) { return host_memory(size); }

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

void HostTransport::combine(const Reduction& reduction, std::byte* result,
                            std::span<const std::byte* const> operands, Count count, Ticket ticket) {
  // Soon sent, and so read: not past the caches.
  combine_many(reduction, std::span(&result, 1), operands, count, Stores::cached);
  local_.push_back(ticket);
}

void PollingTransport::wait(std::vector<Ticket>& done) {
  const std::size_t before = done.size();
  Backoff backoff(rules_.timeout, rules_.yields);
  for (;;) {
    const bool progress = poll(done);
    if (done.size() > before) return;
    if (progress) {
      backoff.renew();
      continue;
    }
    if (rules_.idle) rules_.idle();
    if (!backoff.again()) rules_.give_up("messages", awaited());
  }
}

void PollingTransport::abandon() {
  if (rules_.failed) rules_.failed();
  std::vector<Ticket> unwanted;
  take_local(unwanted);
  stop();
}

bool HostTransport::take_local(std::vector<Ticket>& done) {
  done.insert(done.end(), local_.begin(), local_.end());
  const bool any = !local_.empty();
  local_.clear();
  return any;
}

}  // namespace polyring
